"""Runs over stored records: bounded runs, replays of a stream, and re-executed batches."""
