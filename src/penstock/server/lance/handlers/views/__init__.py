"""Handlers for views that change."""
