"""A producer with a delivery ledger: it can tell where each record is."""

from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import JsonChecker, RecordChecker, encode_batch
from penstock.ingestion.producer.ledgered_producer import (
    BackpressureStatus,
    InFlightWindow,
    LedgeredProducer,
    NewTopicPolicy,
)
from penstock.ingestion.producer.partitioner import (
    KEY_PARTITIONER,
    ROUND_ROBIN_PARTITIONER,
    KeyPartitioner,
    Partitioner,
    load_partitioner,
)
from penstock.ingestion.producer.record_serde import RecordSerde, create_record_format

__all__ = [
    "KEY_PARTITIONER",
    "ROUND_ROBIN_PARTITIONER",
    "BackpressureStatus",
    "InFlightWindow",
    "JsonChecker",
    "KeyPartitioner",
    "LedgeredProducer",
    "NewTopicPolicy",
    "Partitioner",
    "RecordChecker",
    "RecordSerde",
    "SourceBatch",
    "create_record_format",
    "encode_batch",
    "load_partitioner",
]
