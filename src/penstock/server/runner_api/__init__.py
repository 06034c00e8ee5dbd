"""The runner's protocol, and the runner that a server starts as its child."""
