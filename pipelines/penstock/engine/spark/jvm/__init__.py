"""Classes that the engine adds to Spark's JVM: their Java sources, and the jar of them."""
