"""Refreshes of materialized views: what they share, and a folder for each way to follow a source."""
