"""The shipped pipelines and their demo settings."""
