"""Functions of users in Python workers: loading, calling, and what becomes of failures."""
