"""Memory in voice programs: between the end of the user's words and the model."""
