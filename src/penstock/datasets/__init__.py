"""All access to storage and to Lance files."""
