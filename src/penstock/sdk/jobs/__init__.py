"""Jobs: waiting for them, their progress, plans and previews."""
