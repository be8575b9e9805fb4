"""A producer that can prove what it delivered."""

from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import Checker, JsonChecker, encoded
from penstock.ingestion.producer.delivery import LedgeredProducer, Waiting, Window
from penstock.ingestion.producer.formats import Format, format_of
from penstock.ingestion.producer.routing import ByKey, Route, by_function, round_robin

__all__ = [
    "Batch",
    "ByKey",
    "Checker",
    "Format",
    "JsonChecker",
    "LedgeredProducer",
    "Route",
    "Waiting",
    "Window",
    "by_function",
    "encoded",
    "format_of",
    "round_robin",
]
