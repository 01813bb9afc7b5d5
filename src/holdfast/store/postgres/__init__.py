"""The backend for a PostgreSQL server."""
