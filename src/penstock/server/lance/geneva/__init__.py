"""What only Geneva's remote client asks for."""
