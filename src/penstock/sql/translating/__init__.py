"""Translate a view's statement to another dialect, where it means the same there."""
