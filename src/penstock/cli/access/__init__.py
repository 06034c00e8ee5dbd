"""Commands about keys and roles."""
