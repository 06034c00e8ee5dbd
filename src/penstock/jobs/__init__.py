"""Data jobs: each is planned, run on Spark and committed by one engine."""
