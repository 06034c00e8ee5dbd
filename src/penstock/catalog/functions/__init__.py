"""Functions: their code, the names and versions that they have, and who uses them."""
