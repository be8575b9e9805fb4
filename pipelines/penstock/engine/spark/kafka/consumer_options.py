"""The options of the Kafka consumers in Spark."""

CONSUMER_OPTIONS = {
    # Records of aborted transactions are not read.
    "kafka.isolation.level": "read_committed",
    # Spark reads the records of a batch, then requests the first and last offset. Meanwhile the client prefetches.
    # Without new records, the broker answers the prefetch after half a second, and only then the other requests.
    # A small batch waits once for each partition, so each millisecond counts.
    "kafka.fetch.max.wait.ms": "1",
    # Spark requests these two offsets again after each poll: with Kafka's default, twice for each 500 records. The
    # size of a poll is still limited by the bytes of a fetch.
    "kafka.max.poll.records": "20000",
}
