"""The `penstock` command, one module per sub-command."""
