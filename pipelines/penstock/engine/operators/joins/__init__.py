"""Joins without windows: records of two inputs meet by how far apart they are in event time."""
