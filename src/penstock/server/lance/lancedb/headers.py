"""The mark of lancedb's client: what it sends with all requests, by routes of whatever form."""

# The database that it is connected to.
LANCEDB_HEADER = "x-lancedb-database"
