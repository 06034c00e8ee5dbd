"""What only lancedb's remote client asks for."""
