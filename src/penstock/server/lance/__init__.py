"""The Lance Namespace REST protocol."""
