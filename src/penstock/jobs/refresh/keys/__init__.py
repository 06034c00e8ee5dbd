"""Views that are followed by keys: what has a touched key is computed again."""
