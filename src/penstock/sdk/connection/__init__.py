"""How the SDK finds, starts and talks to a server."""
