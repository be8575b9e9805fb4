"""Statistics over time: figures of each stretch of a table, and whether the last is unlike the others."""
