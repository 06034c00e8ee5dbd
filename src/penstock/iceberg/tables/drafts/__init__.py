"""A table while one request changes it."""
