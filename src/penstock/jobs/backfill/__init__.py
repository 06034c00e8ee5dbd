"""Backfills: fill a computed column where it is not fresh."""
