"""What keeps a table's folder small: compaction of its files, and removal of old versions."""
