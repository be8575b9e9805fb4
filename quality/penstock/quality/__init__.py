"""Expectations, statistics, audits and quarantines of streams and tables."""
