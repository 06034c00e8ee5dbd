"""Decorated functions: their declaration, and how they are sent."""
