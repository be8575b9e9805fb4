"""Dagster definitions about topics."""
