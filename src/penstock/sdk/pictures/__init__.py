"""What objects of the SDK look like in a notebook: HTML and SVG, with no scripts."""
