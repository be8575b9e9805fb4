"""Demonstrations: run one pipeline on generated input and draw its panes, with a separate broker and folders.

The input drives the clock, so an hour of readings takes seconds, and the same seed gives the same batches, panes
and diagram. Engine, broker, producer and tables are those of a live stream.
"""
