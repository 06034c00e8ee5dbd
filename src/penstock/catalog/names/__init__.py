"""Namespaces and tables: what a name stands for, where it lies, who depends on it."""
