"""Computed columns: declared, filled by backfills, previewed."""
