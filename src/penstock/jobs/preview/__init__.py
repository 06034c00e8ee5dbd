"""Previews: a column computed for a few rows, and nothing written."""
