"""The console: pages for people in a browser, and their sessions."""
