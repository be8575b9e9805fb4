"""The plan: a pipeline as plain data that can be inspected, compared, serialized and fingerprinted.

Nothing here runs a pipeline or depends on Spark, YAML or the command line.
"""
