"""Integers of 32 bits."""

from dataclasses import dataclass

from penstock.ingestion.contracts.field_types.integer_type import IntegerType


@dataclass(frozen=True, slots=True)
class IntType(IntegerType):
    """An integer of 32 bits."""

    keyword = "int"
    proto_name = "int32"
    spark_name = "INT"
    avro_name = "int"
    lowest = -(2**31)
    highest = 2**31 - 1
    odcs_format = "i32"
    odcs_formats = ("i8", "i16", "i32", "u8", "u16")
