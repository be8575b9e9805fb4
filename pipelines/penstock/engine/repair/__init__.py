"""Repairs a stream whose journal, state, checkpoint and tables do not fit together."""
