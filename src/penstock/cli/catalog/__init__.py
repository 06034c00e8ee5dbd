"""Commands that show and change what the catalog holds."""
