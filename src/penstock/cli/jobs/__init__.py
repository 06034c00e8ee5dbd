"""Commands that start and follow jobs."""
