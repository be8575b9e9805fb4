"""Dagster definitions of tables."""
