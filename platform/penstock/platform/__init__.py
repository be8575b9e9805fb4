"""Dagster's definitions, the control store and the penstock command."""
