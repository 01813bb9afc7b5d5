"""What users see in a browser; `shell` says how a page is added."""
