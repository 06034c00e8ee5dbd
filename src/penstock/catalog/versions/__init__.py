"""Versions of tables: recorded, settled, reconciled with storage; tags and branches."""
