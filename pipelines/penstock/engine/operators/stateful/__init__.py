"""Stateful functions: user code with state and timers for each key."""
