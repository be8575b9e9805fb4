"""The batch protocol: intent, fold, prepared outcome, commits. Exact after a kill between any two steps."""
