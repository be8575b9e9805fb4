"""How long tests wait for what must happen. Only a failing test waits that long, so a slow machine fails none."""

PATIENCE_S = 240.0
"""Below the time limit of a test, so that a failed wait says what it waited for."""
