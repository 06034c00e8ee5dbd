"""Penstock: a catalog server for Lance tables."""
