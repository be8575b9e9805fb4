"""Rules that a plan must satisfy, one subject a module."""
