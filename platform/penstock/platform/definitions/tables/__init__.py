"""Dagster definitions about tables."""
