"""Demonstrations: one pipeline from nothing to a picture, on a broker and in folders of its own.

The clock is that of the input, not of the machine: an hour of readings takes seconds, and the same seed gives the
same batches, the same panes and the same picture. Engine, broker, producer and tables are those of a live stream.
"""
