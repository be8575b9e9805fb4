"""Use cases of the platform, one per module, shared by the command line and Dagster."""
