"""The rules of Iceberg view metadata: pure functions from plain JSON to plain JSON."""
