"""HTTP: decode, call the catalog, encode."""
