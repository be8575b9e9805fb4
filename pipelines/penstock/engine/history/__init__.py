"""Runs over records that are stored already: bounded runs, replays and re-executed batches."""
