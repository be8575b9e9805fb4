"""SQL that proves a JSON record valid, after `from_json` read it.

`from_json` accepts more than a contract does: a number for text, text after the record, bytes that are not UTF-8.
The proof is true only if the judge of records accepts the record and reads the same values. Other records are
judged in Python: see `suspects.py`. Costly tests run only after a cheap one fails.
"""

import re
from collections.abc import Sequence

from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import Column, PlanSource
from penstock.engine.spark.parse.source_rules import (
    build_record_rules,
    declared_columns,
    find_declared_type,
)
from penstock.engine.spark.parse.wire_columns import json_type
from penstock.ingestion.contracts.field_types.string_type import StringType

MAX_PROVEN_DEPTH = 100
STRICT_JSON_OPTIONS = (
    "map('columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false', "
    f"'allowNonNumericNumbers', 'false', 'maxNestingDepth', '{MAX_PROVEN_DEPTH}')"
)
CANONICAL_JSON_OPTIONS = "map('columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false')"
"""The options for records that the judge has written: numbers may be the texts NaN and Infinity."""
_BACKSLASH = "\\"
_REPLACEMENT_CHARACTER = "\ufffd"
_ESCAPED_PAIR = r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
_ESCAPED_SURROGATE = r"(?i)\\ud[89a-f]"
_VALUE_START = r"[:\[,]\s*"
_REWRITTEN_DECIMAL_TEXT = r'"[-+.,eE\p{Nd}]*[,\p{Nd}&&[^0-9]]'
"""A comma, or a digit that is not of ASCII, in a text that starts as a number: `from_json` reads "1,5" as 15."""
_NEGATIVE_EXPONENT = r'"?[-+]?[0-9.]+[eE]-'
_LONG_FRACTION = r'"?[-+]?[0-9]*\.[0-9]{%d}'
_DECIMAL_SCALE = re.compile(r"DECIMAL\(\d+, (\d+)\)", re.IGNORECASE)


def record_proof_sql(source: PlanSource, record: str, raw: str, strict_flag: str | None = None) -> str:
    """Return SQL that is true if the record is proven valid; `record` is what was read from `raw`.

    `strict_flag` is true if the strict parser has read it: then only the rules of the types are left to prove.
    A record that cannot be judged, because of a column that no contract can have, is valid if `from_json` reads it.
    """
    text = f"cast({raw} AS STRING)"
    columns = declared_columns(source)
    conditions = [f"{record} IS NOT NULL", f"{record}._corrupt IS NULL"]
    if build_record_rules(source) is None:
        return f"({' AND '.join(conditions)})"
    conditions += [
        f"{_member(record, column)} IS NOT NULL"
        for column in columns
        if column.required or column.name == source.event_time
    ]
    conditions += [
        f"coalesce({proof}, true)" for column in columns if (proof := _type_proof(record, column)) is not None
    ]
    text_conditions = [
        _no_trailing_text(text),
        _no_lone_surrogate(text),
        *_text_proofs(record, columns, text),
    ]
    if source.unknown_fields != "ignore":
        names = ", ".join(sql_literal(column.name) for column in columns)
        text_conditions.append(f"forall(json_object_keys({text}), name -> name IN ({names}))")
    decimal_scales = [int(scale) for column in columns for scale in _DECIMAL_SCALE.findall(json_type(column))]
    if decimal_scales:
        text_conditions.append(_no_rewritten_decimal(text, min(decimal_scales)))
    text_proof = " AND ".join(text_conditions)
    conditions.append(text_proof if strict_flag is None else f"({strict_flag} OR {text_proof})")
    return f"coalesce({' AND '.join(conditions)}, false)"


def _member(record: str, column: Column) -> str:
    return f"{record}.{quote_column(column.name)}"


def _type_proof(record: str, column: Column) -> str | None:
    field_type = find_declared_type(column)
    return None if field_type is None else field_type.proof_sql(_member(record, column))


def _no_trailing_text(text: str) -> str:
    """Return SQL that is true if nothing follows the record, which `from_json` ignores.

    In a flat record the only `}` is the last character. Other texts are read again, as the item of an array and as
    a member of an object: text that follows a record is an error in one of them.
    """
    before_brace = f"octet_length(substring_index({text}, '}}', 1))"
    as_item = f"size(from_json(concat('[', {text}, ']'), 'ARRAY<STRUCT<`_`: BOOLEAN>>')) = 1"
    as_member = f"from_json(concat('{{\"_\":', {text}, '}}'), '`_` STRUCT<`_`: BOOLEAN>').`_` IS NOT NULL"
    return f"({before_brace} = octet_length({text}) - 1 OR {as_item} AND {as_member})"


def _no_lone_surrogate(text: str) -> str:
    """Return SQL that is true unless an escape is half of a character, which `from_json` replaces."""
    without_backslashes = f"replace({text}, {sql_literal(_BACKSLASH * 2)}, '')"
    without_pairs = f"regexp_replace({without_backslashes}, {sql_literal(_ESCAPED_PAIR)}, '')"
    return (
        f"(NOT contains({text}, {sql_literal(_BACKSLASH + 'u')}) "
        f"OR NOT ({without_pairs} RLIKE {sql_literal(_ESCAPED_SURROGATE)}))"
    )


def _no_rewritten_decimal(text: str, scale: int) -> str:
    """Return SQL that is true unless `from_json` may change a decimal: remove commas, or round it to a scale."""
    changes = "|".join((_REWRITTEN_DECIMAL_TEXT, _NEGATIVE_EXPONENT, _LONG_FRACTION % (scale + 1)))
    pattern, escape = f"{_VALUE_START}(?:{changes})", sql_literal(_BACKSLASH + "u")
    return f"NOT contains({text}, {escape}) AND NOT ({text} RLIKE {sql_literal(pattern)})"


def _text_proofs(record: str, columns: Sequence[Column], text: str) -> list[str]:
    """Return SQL that is true if text was written as text, and in UTF-8."""
    names = [column.name for column in columns if isinstance(find_declared_type(column), StringType)]
    texts = [f"{record}.{quote_column(name)}" for name in names]
    compound_proofs = [
        f"coalesce({proof}, true)"
        for column in columns
        if column.name not in names
        and (field_type := find_declared_type(column)) is not None
        and (proof := field_type.text_proof_sql(_member(record, column), _is_no_other_value)) is not None
    ]
    proofs = list(compound_proofs)
    if compound_proofs:
        proofs.append(f"is_valid_utf8({text})")
    elif texts:
        unharmed = " AND ".join(
            f"({each} IS NULL OR NOT contains({each}, {sql_literal(_REPLACEMENT_CHARACTER)}))"
            for each in texts
        )
        proofs.append(f"({unharmed} OR is_valid_utf8({text}))")
    if texts:
        plain = " AND ".join(f"({each} IS NULL OR {_starts_as_word(each)})" for each in texts)
        proofs.append(f"({plain} OR {_all_quoted(names, texts, text)})")
    return proofs


def _starts_as_word(value: str) -> str:
    """Return a cheap test that no number, array, object or boolean passes."""
    return (
        f"({value} > ':' AND {value} < '{{' AND NOT startswith({value}, '[') "
        f"AND {value} <> 'true' AND {value} <> 'false')"
    )


def _is_no_other_value(value: str) -> str:
    """Return SQL that is true if a text cannot be what `from_json` makes of another value.

    It makes text in quotes of infinite numbers.
    """
    starts = " OR ".join(f"startswith({value}, {sql_literal(start)})" for start in ('"', "[", "{"))
    return f"NOT ({starts} OR {value} IN ('true', 'false') OR try_cast({value} AS DOUBLE) IS NOT NULL)"


def _all_quoted(names: Sequence[str], texts: Sequence[str], text: str) -> str:
    """Return SQL that is true if each text is no other value, or is in quotes after the only member of its name."""
    items = ", ".join(
        f"named_struct('name', {sql_literal(chr(34) + name + chr(34))}, 'value', {each})"
        for name, each in zip(names, texts, strict=True)
    )
    after_name = f"substring_index({text}, x.name, -1)"
    before_name = f"substring_index({text}, x.name, 1)"
    parts = " + ".join(f"octet_length({part})" for part in (before_name, "x.name", after_name))
    is_only = f"{parts} = octet_length({text})"
    is_quoted = f"startswith(ltrim(substring({after_name}, 2)), concat('\"', x.value, '\"'))"
    has_colon = f"startswith({after_name}, ':')"
    return (
        f"forall(array({items}), x -> x.value IS NULL OR {_is_no_other_value('x.value')} "
        f"OR NOT contains({text}, {sql_literal(_BACKSLASH)}) AND {is_only} AND {has_colon} AND {is_quoted})"
    )
