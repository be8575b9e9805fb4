"""The `penstock` command line: one module for each command, loaded when the command runs."""
