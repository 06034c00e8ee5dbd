"""Values that functions made, kept by row and inputs until they are in the table or view."""
