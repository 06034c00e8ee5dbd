"""The rules of the catalog: a folder per noun, each rule with its SQL."""
