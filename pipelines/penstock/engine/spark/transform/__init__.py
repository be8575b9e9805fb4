"""Runs the steps between parsing and aggregation: the user's steps and lookups."""
