"""Functions in a process of their own, so that only it dies when it must."""
