"""The tools where people already are: Polars, mbi, dbt, Dagster, OpenLineage, OpenMetrics. See README.md here."""
