"""From text to a tree that can be trusted, and changes of a text."""
