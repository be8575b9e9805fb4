"""What Kafka's clients in Spark are told of how to read."""

READING = {
    # Records of a transaction that was aborted are none.
    "kafka.isolation.level": "read_committed",
    # Spark asks for records that are there, and then for the first and last offset. Meanwhile the client asks ahead
    # for what comes next; where nothing does, a broker answers that after half a second, and only then the others.
    "kafka.fetch.max.wait.ms": "5",
}
