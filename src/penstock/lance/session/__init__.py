"""Open datasets: of this process, of a catalog elsewhere, and of versions not published yet."""
