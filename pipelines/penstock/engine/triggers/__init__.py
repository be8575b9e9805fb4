"""Triggers as state machines, each vectorized over all windows of a batch."""
