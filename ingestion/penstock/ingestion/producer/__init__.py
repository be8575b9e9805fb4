"""A producer that can prove what it delivered."""

from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import Checker, JsonChecker, encoded
from penstock.ingestion.producer.delivery import LedgeredProducer, Waiting, Window
from penstock.ingestion.producer.formats import Format, format_of
from penstock.ingestion.producer.routing import BY_KEY, ROUND_ROBIN, ByKey, Route, route_named

__all__ = [
    "BY_KEY",
    "ROUND_ROBIN",
    "Batch",
    "ByKey",
    "Checker",
    "Format",
    "JsonChecker",
    "LedgeredProducer",
    "Route",
    "Waiting",
    "Window",
    "encoded",
    "format_of",
    "route_named",
]
