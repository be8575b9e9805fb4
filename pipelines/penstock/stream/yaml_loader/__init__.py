"""Pipelines written as YAML."""
