"""Parse SQL text into a trusted tree, and edit the text."""
