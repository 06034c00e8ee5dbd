"""Definitions of materialized views, made from what a client sent."""
