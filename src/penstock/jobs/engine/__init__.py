"""Parts that all jobs share: attempts, row ranges, finished work, waiting, workers' reports."""
