"""Fields and schemas, and columns that an expression or a function computes."""
