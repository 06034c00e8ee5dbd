"""What a lake has: namespaces, tables, views and functions, by their names."""
