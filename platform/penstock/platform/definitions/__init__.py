"""What Dagster is told: an asset for each topic, stream and table of the catalog, a sensor, and jobs."""
