"""A changed definition meets the state of a stream that runs: what changed, what it takes, and doing it."""
