"""Keeping tables small: compaction, removal of old versions, and policies for both."""
