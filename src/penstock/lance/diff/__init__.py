"""What became of rows between two versions; sets and masks of rows."""
