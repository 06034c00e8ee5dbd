"""Commands for whoever runs a server: serve, runner, backup, doctor and relatives."""
