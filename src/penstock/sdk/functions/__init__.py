"""Decorated functions: what they take and give, and how they go over the wire."""
