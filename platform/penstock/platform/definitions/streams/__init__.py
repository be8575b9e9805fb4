"""Dagster definitions about streams."""
