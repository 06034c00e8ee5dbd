"""SQL expressions that clients send: read here before Lance reads them, and held within bounds."""
