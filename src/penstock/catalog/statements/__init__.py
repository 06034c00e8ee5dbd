"""SQL statements that are asked about: their types, and their rows."""
