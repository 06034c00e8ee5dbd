"""Functions of users, run in Python workers: loading, calling, and what becomes of failures."""
