"""The SQL of views: read, checked, resolved, translated; what a query and a function are."""
