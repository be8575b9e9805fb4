"""The arguments and results of user functions."""
