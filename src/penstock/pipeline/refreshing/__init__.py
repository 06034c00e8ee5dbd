"""Refreshes of materialized views, as far as no Spark is needed."""
