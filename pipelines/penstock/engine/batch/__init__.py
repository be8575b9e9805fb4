"""The batch protocol: intent, processing, outcome, commits. Exactly once, also if it is killed in between."""
