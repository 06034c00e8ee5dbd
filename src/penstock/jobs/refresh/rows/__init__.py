"""Views with a row for each row of one source that the filter takes."""
