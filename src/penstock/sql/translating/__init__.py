"""A view's statement in another dialect, where it means the same there."""
