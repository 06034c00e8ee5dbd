"""Manifests as files, and the commits that Penstock makes itself."""
