"""Views of Iceberg tables: new rows are appended, and anything else is recomputed as a whole."""
