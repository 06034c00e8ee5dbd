"""Iceberg views: their records, metadata files and dialects."""
