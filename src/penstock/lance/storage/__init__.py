"""Where tables lie: the lake and its roots, files in it, and the threads that work on data."""
