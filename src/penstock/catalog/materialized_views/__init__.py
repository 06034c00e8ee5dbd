"""Materialized views: defined, created, refreshed, and how far they are behind."""
