"""Tables as files: which of them a moment needs, copying them, and whether all are there."""
