"""The SQL of views: parse, check, resolve and translate it; definitions of views."""
