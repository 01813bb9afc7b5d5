"""Other programs' conversations, read into Holdfast's messages and appended through the front door."""
