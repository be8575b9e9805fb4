"""The stream host: one Spark application that runs streams, each failing on its own."""
