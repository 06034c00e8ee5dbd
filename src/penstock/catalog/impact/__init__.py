"""What depends on a table or column, and what a change of it would break."""
