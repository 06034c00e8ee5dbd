"""How views of each shape follow their sources: what there is to do."""
