"""How `penstock host run` starts a stream host, whatever starts Spark."""
