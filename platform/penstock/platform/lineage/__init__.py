"""Where columns come from: lineage for Dagster, OpenLineage and the expectations page."""
