"""Metadata of Iceberg tables, in format versions 1, 2 and 3: pure, from request to file."""
