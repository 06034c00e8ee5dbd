"""The SQL of views: reading, checking, resolving, translating; what a view's query and function are."""
