"""The backend for one SQLite file."""
