"""Tables: rows, columns, history, queries."""
