"""The nouns of the catalog, as frozen data and pure rules about names."""
