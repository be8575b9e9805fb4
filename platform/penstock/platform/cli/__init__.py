"""The `penstock` command. Each command is a file of its own, loaded when it is asked for."""
