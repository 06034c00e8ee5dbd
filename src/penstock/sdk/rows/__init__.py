"""Rows on their way in and out: whatever holds some, as Arrow batches."""
