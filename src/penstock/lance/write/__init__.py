"""Rows and columns on their way into a table: checked, laid out, written and committed."""
