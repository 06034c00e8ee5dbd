"""Dialect care: does a view's SQL parse, what does it read, and what is it in another dialect."""
