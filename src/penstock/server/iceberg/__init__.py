"""The Iceberg REST catalog: tables and views, mounted at /iceberg."""
