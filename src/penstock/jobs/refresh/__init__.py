"""Refreshes of materialized views: what they share, and a folder per way to follow a source."""
