"""Triggers as state machines that serve all windows of a batch at once."""
