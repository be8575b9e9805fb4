"""Contracts, topics as code, sources, and a producer that can prove what it delivered."""
