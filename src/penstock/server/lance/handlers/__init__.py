"""The operations of the Lance protocol, one module per noun."""
