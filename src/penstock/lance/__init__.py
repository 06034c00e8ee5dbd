"""All access to storage and to Lance files; nothing here knows of jobs."""
