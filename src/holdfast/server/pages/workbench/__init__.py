"""The page of one conversation as a workbench: its transcript, its coverage, a map of all of it, search and Markdown."""
