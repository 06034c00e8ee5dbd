"""Penstock: a catalog server and data pipeline for Lance tables and Iceberg views."""
