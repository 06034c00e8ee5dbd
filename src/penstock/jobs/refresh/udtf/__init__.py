"""Views that a function makes of partitions."""
