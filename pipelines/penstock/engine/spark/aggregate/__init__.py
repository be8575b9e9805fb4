"""Aggregates parsed records into partials, in one Spark job."""
