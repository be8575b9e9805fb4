"""Column lineage for Dagster, OpenLineage and the page of expectation suites."""
