"""Recipes of data jobs: snapshot, plan, run on Spark, commit, report."""
