"""Iceberg tables: their records, metadata files, commits and credentials."""
