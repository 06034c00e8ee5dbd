"""Spark: tasks, sessions for SQL, Lance tables as sources, and the gate before SQL."""
