"""Definitions of materialized views: from what a client sent to what a refresh follows."""
