"""What people and Dagster ask of the platform, one use case a module."""
