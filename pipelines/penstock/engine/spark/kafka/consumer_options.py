"""What Kafka's clients in Spark are told of how to read."""

CONSUMER_OPTIONS = {
    # Records of a transaction that was aborted are none.
    "kafka.isolation.level": "read_committed",
    # Spark asks for records that are there, and then for the first and last offset. Meanwhile the client asks ahead
    # for what comes next; where nothing does, a broker answers that after half a second, and only then the others.
    # A batch of few records waits once for each partition, so each millisecond counts.
    "kafka.fetch.max.wait.ms": "1",
    # After each poll it asks for these two offsets again: with Kafka's 500 records a poll, two questions for each
    # 500. What a poll may hold is still bounded by the bytes of what was fetched.
    "kafka.max.poll.records": "20000",
}
