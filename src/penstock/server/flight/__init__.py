"""SQL by Arrow Flight, as lancedb's client asks for it: a second port in front of `/v1/sql`."""
