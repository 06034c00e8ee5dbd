"""The runner's own check of Spark's SQL: read what Spark understood before it runs."""
