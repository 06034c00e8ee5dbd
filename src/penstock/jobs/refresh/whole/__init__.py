"""Views that are recomputed as a whole."""
