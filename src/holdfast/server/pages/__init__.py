"""What people see in a browser; `shell` says how a page is added."""
