"""Joins: rows of window joins, and joins without windows (interval, as-of) with their state."""
