"""What all jobs share: the attempt, ranges of rows, finished work, waiting, reports of workers."""
