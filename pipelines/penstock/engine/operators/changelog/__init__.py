"""Operators over changelogs: the panes of one stage as the input of another."""
