"""The types of a query's columns, found by Spark."""
