"""Views that get another definition, with the refresh that fills it."""
