"""Views of groups: touched groups are computed again."""
