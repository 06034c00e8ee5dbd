"""The parts of a table's metadata, each checked, compared and numbered by its own rules."""
