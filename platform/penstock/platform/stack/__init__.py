"""The local stack: its programs, how they start and how they stop."""
