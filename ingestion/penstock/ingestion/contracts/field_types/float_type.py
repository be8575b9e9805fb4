"""Floating-point numbers of 32 bits."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.ingestion.contracts.field_types.floating_type import FloatingType
from penstock.ingestion.contracts.field_types.plain_type import Promotions


@dataclass(frozen=True, slots=True)
class FloatType(FloatingType):
    """A floating-point number of 32 bits."""

    keyword = "float"
    proto_name = "float"
    spark_name = "FLOAT"
    avro_name = "float"
    promoted_from: ClassVar[Promotions] = {
        "avro": ("int", "long", "timestamp"),
        "json": ("int", "long", "timestamp", "double"),
    }
    width_bytes = 4
    odcs_format = "f32"
