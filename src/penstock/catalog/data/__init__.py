"""Rows of tables: read and changed through the catalog's own arbitration."""
