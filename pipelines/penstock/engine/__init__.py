"""The streaming engine: plans, their execution on Spark, and the host that keeps streams running."""
