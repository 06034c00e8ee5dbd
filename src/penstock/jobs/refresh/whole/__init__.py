"""Views that are computed as a whole."""
