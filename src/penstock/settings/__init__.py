"""The settings: what can be set, how it is described, where it comes from, what may be shown."""
