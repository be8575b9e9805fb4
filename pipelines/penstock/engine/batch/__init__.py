"""The batch protocol: intent, fold, outcome, commits. Exactly once, also after a kill between any two steps."""
