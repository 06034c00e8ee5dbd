"""Open datasets: handles of this process, tables of a catalog elsewhere, versions not published yet."""
