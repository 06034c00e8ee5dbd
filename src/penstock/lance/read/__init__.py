"""Rows and facts of one version: queries, scans, rows by their ids, schema and statistics."""
