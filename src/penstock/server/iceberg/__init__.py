"""The Iceberg REST catalog's views, mounted at /iceberg."""
