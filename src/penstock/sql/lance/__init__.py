"""Lance's SQL: queries in it, and expressions written in it."""
