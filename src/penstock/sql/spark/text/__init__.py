"""The text that Spark is given: read once, checked word by word, written anew."""
