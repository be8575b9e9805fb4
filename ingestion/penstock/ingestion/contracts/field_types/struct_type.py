"""Structs: named members inside of a field."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Self

import msgspec

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.json_cells import parse_json_cell
from penstock.ingestion.contracts.field_types.type_text import split_outside_brackets
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoMember, ProtoShape, ProtoStruct
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_MEMBER_PATTERN = re.compile(r"`?([A-Za-z_][A-Za-z0-9_]*)`?(\??)")
_SPARK_STRUCT_PATTERN = re.compile(r"STRUCT\s*<(.+)>", re.IGNORECASE | re.DOTALL)
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class StructMember:
    """A member of a struct. One that is not `required` may be absent or null."""

    name: str
    type: FieldType
    required: bool = True

    def __str__(self) -> str:
        return f"{self.name}{'' if self.required else '?'}: {self.type}"


@dataclass(frozen=True, slots=True)
class StructType(FieldType):
    """Members with names and types. Members of a record that the type does not have are ignored."""

    members: tuple[StructMember, ...]

    keyword = "struct"
    syntax = "struct<NAME: TYPE, NAME?: TYPE>"

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.members))}>"

    @classmethod
    def from_arguments(cls, arguments: str | None, parse: ParseType) -> Self:
        """Return the struct with these members; a name that ends with `?` is optional."""
        if not arguments:
            raise ContractError(
                "Type struct needs its members. Write struct<NAME: TYPE, NAME?: TYPE>, or list them as fields."
            )
        members = []
        for part in split_outside_brackets(arguments, ","):
            name_text, *type_text = split_outside_brackets(part, ":", limit=1)
            match = _MEMBER_PATTERN.fullmatch(name_text)
            if match is None or not type_text or iskeyword(match[1]):
                raise ContractError(
                    f"'{part}' is not a member of a struct. Write NAME: TYPE, as in city: string."
                )
            members.append(StructMember(match[1], parse(type_text[0]), not match[2]))
        names = [member.name for member in members]
        if len({name.lower() for name in names}) != len(names):
            raise ContractError(
                f"Type struct has a member twice: {', '.join(sorted(names))}. Remove one of them."
            )
        return cls(tuple(members))

    @property
    def is_scalar(self) -> bool:
        """A struct has members."""
        return False

    @property
    def depth(self) -> int:
        """One more than the deepest member."""
        return max(member.type.depth for member in self.members) + 1

    # Python

    @property
    def annotation(self) -> Any:
        """A msgspec structure."""
        return _make_structure(self)

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """A function that returns the fault of the first invalid member, with its name."""
        finders = {
            member.name: find for member in self.members if (find := member.type.fault_finder) is not None
        }

        def find_fault(value: Any) -> str | None:
            for name, find in finders.items():
                part = getattr(value, name)
                if part is not None and (fault := find(part)) is not None:
                    return f"{name}: {fault}"
            return None

        return find_fault if finders else None

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns the members as a mapping, without absent ones."""
        converters = {member.name: member.type.json_converter for member in self.members}
        return _to_mapping_converter(converters, omit_nulls=True) if any(converters.values()) else None

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns the members as a mapping, absent ones as None."""
        return _to_mapping_converter({member.name: member.type.stored_converter for member in self.members})

    @property
    def member_types(self) -> Mapping[str, FieldType]:
        """The type of each member."""
        return {member.name: member.type for member in self.members}

    @property
    def member_names(self) -> tuple[str, ...]:
        """The names of the members."""
        return tuple(member.name for member in self.members)

    def find_part(self, step: str) -> FieldType | None:
        """Return the type of a member."""
        return next((member.type for member in self.members if step == f".{member.name}"), None)

    def normalize_row_value(self, value: Any) -> Any:
        """Return the object in a cell with JSON."""
        return parse_json_cell(value)

    def is_finite(self, value: Any) -> bool:
        """Return whether all members are finite."""
        parts = ((member.type, getattr(value, member.name)) for member in self.members)
        return all(part is None or part_type.is_finite(part) for part_type, part in parts)

    # Spark

    @property
    def spark_type(self) -> str:
        """A struct of the stored members."""
        return self._to_ddl(lambda member_type: member_type.spark_type)

    @classmethod
    def from_spark_type(cls, text: str, parse: ParseType) -> Self | None:
        """Return the struct for one of Spark, whose members may all be null."""
        match = _SPARK_STRUCT_PATTERN.fullmatch(text)
        if match is None:
            return None
        pairs = [split_outside_brackets(part, ":", limit=1) for part in split_outside_brackets(match[1], ",")]
        if not all(len(pair) == 2 for pair in pairs):
            return None
        return cls(tuple(StructMember(name.strip("`"), parse(text), required=False) for name, text in pairs))

    @property
    def json_ddl(self) -> str:
        """A struct of what `from_json` reads for each member."""
        return self._to_ddl(lambda member_type: member_type.json_ddl)

    def value_sql(self, column: str) -> str:
        """Return SQL that converts each member."""
        return self._convert_sql(column, lambda member_type, part: member_type.value_sql(part))

    def wire_sql(self, stored: str) -> str:
        """Return SQL that converts each member back."""
        return self._convert_sql(stored, lambda member_type, part: member_type.wire_sql(part))

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the proof of each member, and that the required ones are there."""
        conditions = []
        for member in self.members:
            part = f"{column}.`{member.name}`"
            proof = member.type.proof_sql(part)
            if member.required:
                conditions.append(f"{part} IS NOT NULL" + (f" AND {proof}" if proof else ""))
            elif proof:
                conditions.append(f"coalesce({proof}, true)")
        return f"IF({column} IS NULL, NULL, {' AND '.join(conditions)})" if conditions else None

    # Avro

    def text_proof_sql(self, column: str, prove_text: Callable[[str], str]) -> str | None:
        """Return SQL for the proof of each member."""
        proofs = [
            f"coalesce({proof}, true)"
            for member in self.members
            if (proof := member.type.text_proof_sql(f"{column}.`{member.name}`", prove_text)) is not None
        ]
        return f"({' AND '.join(proofs)})" if proofs else None

    def to_avro_type(self, name: str) -> object:
        """Return a record of this name."""
        return self._to_avro_record(name, lambda member_type, part_name: member_type.to_avro_type(part_name))

    def to_avro_reader_type(self, name: str) -> object:
        """Return a record of what `from_avro` reads for each member."""
        return self._to_avro_record(
            name, lambda member_type, part_name: member_type.to_avro_reader_type(part_name)
        )

    @property
    def avro_ddl(self) -> str:
        """A struct of what `from_avro` reads for each member."""
        return self._to_ddl(lambda member_type: member_type.avro_ddl)

    def avro_value_sql(self, column: str) -> str:
        """Return SQL that converts each member."""
        return self._convert_sql(column, lambda member_type, part: member_type.avro_value_sql(part))

    @classmethod
    def from_avro_type(cls, avro_type: Any, parse: ParseType) -> Self | None:
        """Return the struct for a record of Avro."""
        if not isinstance(avro_type, Mapping) or avro_type.get("type") != "record":
            return None
        members = []
        for field in avro_type["fields"]:
            part_type, is_optional = field["type"], isinstance(field["type"], list)
            if is_optional:
                part_type = next(branch for branch in part_type if branch != "null")
            members.append(StructMember(field["name"], parse(part_type), not is_optional))
        return cls(tuple(members))

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the members as a mapping."""
        return _to_mapping_converter({member.name: member.type.avro_encoder for member in self.members})

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that decodes each member of a mapping."""
        decoders = {member.name: decode for member in self.members if (decode := member.type.avro_decoder)}

        def decode_members(value: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: decoders[name](part) if name in decoders and part is not None else part
                for name, part in value.items()
            }

        return decode_members if decoders else None

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan each member."""
        for member in self.members:
            present_rows = rows if member.required else scan.scan_union_branch(rows)
            member.type.scan_avro(scan, present_rows, None)

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true if a member has invalid text."""
        conditions = [
            f"coalesce({condition}, false)"
            for member in self.members
            if (condition := member.type.invalid_text_sql(f"{column}.`{member.name}`"))
        ]
        return f"({' OR '.join(conditions)})" if conditions else None

    # JSON Schema and compatibility

    @property
    def proto_shape(self) -> ProtoShape:
        """A message."""
        return ProtoStruct(
            tuple(
                ProtoMember(member.name, member.type.proto_shape, member.required) for member in self.members
            )
        )

    @property
    def json_schema(self) -> JsonSchema:
        """A JSON object."""
        return {
            "type": "object",
            "properties": {member.name: member.type.json_schema for member in self.members},
            "required": [member.name for member in self.members if member.required],
        }

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, parse: ParseType) -> Self | None:
        """Return the struct for an object with properties."""
        if not schema.get("properties"):
            return None
        required = schema.get("required", ())
        return cls(
            tuple(
                StructMember(name, parse(part), name in required)
                for name, part in schema["properties"].items()
            )
        )

    @property
    def odcs_type(self) -> OdcsProperty:
        """An object with its members."""
        properties = [
            {"name": member.name, "required": member.required, **member.type.odcs_type}
            for member in self.members
        ]
        return {"logicalType": "object", "physicalType": "struct", "properties": properties}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, parse: ParseType) -> Self | None:
        """Return the struct for an object with properties."""
        if keys.get("logicalType") != "object" or not keys.get("properties"):
            return None
        return cls(
            tuple(
                StructMember(str(each.get("name")), parse(each), bool(each.get("required", False)))
                for each in keys["properties"]
            )
        )

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether each member can be read, and the required ones are always there."""
        if not isinstance(writer, StructType):
            return False
        written = {member.name: member for member in writer.members}
        return all(_can_read_member(member, written.get(member.name), value_form) for member in self.members)

    def _to_ddl(self, to_ddl: Callable[[FieldType], str]) -> str:
        return f"STRUCT<{', '.join(f'`{member.name}`: {to_ddl(member.type)}' for member in self.members)}>"

    def _convert_sql(self, column: str, to_sql: Callable[[FieldType, str], str]) -> str:
        parts = {member.name: f"{column}.`{member.name}`" for member in self.members}
        converted = {member.name: to_sql(member.type, parts[member.name]) for member in self.members}
        if converted == parts:
            return column
        members = ", ".join(f"'{name}', {sql}" for name, sql in converted.items())
        return f"IF({column} IS NULL, NULL, named_struct({members}))"

    def _to_avro_record(self, name: str, to_type: Callable[[FieldType, str], object]) -> object:
        fields = []
        for member in self.members:
            part_type = to_type(member.type, f"{name}_{member.name}")
            if member.required:
                fields.append({"name": member.name, "type": part_type})
            else:
                fields.append({"name": member.name, "type": ["null", part_type], "default": None})
        return {"type": "record", "name": name, "fields": fields}


@cache
def _make_structure(struct_type: StructType) -> type[msgspec.Struct]:
    members: list[tuple[str, Any] | tuple[str, Any, None]] = [
        (member.name, member.type.annotation)
        if member.required
        else (member.name, member.type.annotation | None, None)
        for member in struct_type.members
    ]
    return msgspec.defstruct("Struct", members, omit_defaults=True, kw_only=True, gc=False)


def _to_mapping_converter(converters: Mapping[str, Convert | None], *, omit_nulls: bool = False) -> Convert:
    def convert_members(value: Any) -> dict[str, Any]:
        parts = {name: getattr(value, name) for name in converters}
        return {
            name: part if part is None or (convert := converters[name]) is None else convert(part)
            for name, part in parts.items()
            if part is not None or not omit_nulls
        }

    return convert_members


def _can_read_member(reader: StructMember, writer: StructMember | None, value_form: ValueForm) -> bool:
    if writer is None or not writer.required:
        return not reader.required and (writer is None or reader.type.can_read(writer.type, value_form))
    return reader.type.can_read(writer.type, value_form)
