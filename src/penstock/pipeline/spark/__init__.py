"""What runs on Spark; the modules here are imported by Python workers too."""
