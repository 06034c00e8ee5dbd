"""Data jobs: plan them, run them on Spark, and commit their results."""
