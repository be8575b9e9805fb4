"""Sessions, sources, sinks and batches: all that knows Spark."""
