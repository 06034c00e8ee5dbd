"""The rules of the catalog: one file per noun, each with its SQL."""
