"""Refreshes of materialized views: shared parts, and a folder per strategy."""
