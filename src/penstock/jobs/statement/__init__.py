"""Run a statement on Spark for whoever waits for its rows."""
