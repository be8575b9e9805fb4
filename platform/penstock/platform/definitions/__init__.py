"""Dagster definitions: assets of topics, streams, tables, archives and backfills, with checks, jobs, sensors."""
