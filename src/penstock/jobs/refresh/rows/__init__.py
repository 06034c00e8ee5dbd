"""Views with one row for each row of a source that matches the filter."""
