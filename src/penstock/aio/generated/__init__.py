"""The SDK to be awaited, written by scripts/async_sdk.py."""
