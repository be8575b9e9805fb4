"""Statistics over time: figures of a table per interval, and the detection of sudden changes."""
