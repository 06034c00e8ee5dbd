"""Who may do what: keys, grants, and the log of what was done."""
