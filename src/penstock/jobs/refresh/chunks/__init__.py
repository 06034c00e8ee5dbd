"""Views that a chunker makes: children of source rows."""
