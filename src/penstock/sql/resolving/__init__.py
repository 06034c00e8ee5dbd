"""Resolve statements: the tables and columns they read, the functions they call, their shape."""
