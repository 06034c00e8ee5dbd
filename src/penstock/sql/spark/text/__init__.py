"""The text that Spark gets: parsed once, checked word by word, and rewritten."""
