"""Spark's SQL: queries, types, functions."""
