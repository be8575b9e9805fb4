"""Floating-point numbers of 64 bits."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.ingestion.contracts.field_types.floating_type import FloatingType
from penstock.ingestion.contracts.field_types.plain_type import Promotions


@dataclass(frozen=True, slots=True)
class DoubleType(FloatingType):
    """A floating-point number of 64 bits."""

    keyword = "double"
    proto_name = "double"
    spark_name = "DOUBLE"
    avro_name = "double"
    reads_plain_json = True
    promoted_from: ClassVar[Promotions] = {
        "avro": ("int", "long", "timestamp", "float"),
        "json": ("int", "long", "timestamp", "float"),
    }
    width_bytes = 8
    odcs_format = "f64"
