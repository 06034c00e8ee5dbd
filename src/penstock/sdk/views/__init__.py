"""Views: materialized ones, and Iceberg's."""
