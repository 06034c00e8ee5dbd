"""How views of each shape follow their sources: the work itself."""
