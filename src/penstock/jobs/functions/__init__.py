"""Run users' functions in Python workers: load and call them, and handle failures."""
