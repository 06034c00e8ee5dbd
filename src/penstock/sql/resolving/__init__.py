"""Which tables and columns a statement reads, what it calls, and how it can be followed."""
