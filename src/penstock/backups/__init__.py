"""Backups of a catalog with its lake: make one, restore it elsewhere, and move a lake."""
