"""Session windows: windows that grow and merge."""
