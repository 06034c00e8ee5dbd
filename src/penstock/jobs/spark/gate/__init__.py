"""The runner's own gate before Spark's SQL: what Spark understood is read before it runs."""
