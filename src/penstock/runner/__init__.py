"""The runner: leases jobs from a server over HTTP, and owns a Spark session."""
