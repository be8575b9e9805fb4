"""Integers of 64 bits."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.ingestion.contracts.field_types.integer_type import IntegerType
from penstock.ingestion.contracts.field_types.plain_type import Promotions


@dataclass(frozen=True, slots=True)
class LongType(IntegerType):
    """An integer of 64 bits."""

    keyword = "long"
    proto_name = "int64"
    spark_name = "BIGINT"
    avro_name = "long"
    reads_plain_json = True
    promoted_from: ClassVar[Promotions] = {"avro": ("int", "timestamp"), "json": ("int", "timestamp")}
    lowest = -(2**63)
    highest = 2**63 - 1
    odcs_format = "i64"
    # Without a format the standard means 32 bits, which many documents do not know.
    odcs_formats = ("i64", "u32", None)
