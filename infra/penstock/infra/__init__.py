"""Terraform, the local broker, Spark's processes and the jars they run from."""
