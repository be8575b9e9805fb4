"""The pane engine, the stream host and the shipped pipelines."""
