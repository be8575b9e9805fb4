"""Mistakes in a source of a user: each ends in one sentence, and none sends a record twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installed_kinds import write_modules

from penstock.ingestion.contracts import load_contract
from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.sources.source import RecordSource, read_rest
from penstock.ingestion.sources.source_discovery import open_source

VALID = '''import json

from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources import ReplayableSource, SourceKind


class ShopSource(ReplayableSource, SourceKind):
    """Orders of a shop."""

    kind = "shop"

    def __init__(self):
        self.description = "shop"

    @classmethod
    def open(cls, context):
        return cls()

    def read(self, position):
        for first in range(position or 0, 50, 10):
            orders = [{"id": number} for number in range(first, first + 10)]
            yield SourceBatch([json.dumps(order).encode() for order in orders], first)
'''
YIELD = "yield SourceBatch([json.dumps(order).encode() for order in orders], first)"
BATCH_EXAMPLE = "yield SourceBatch([b'{\"id\": 1}'], position=1)."
MISTAKES = {
    "a list in place of a batch": (
        YIELD,
        "yield orders",
        "source {name} ({file}): read yielded a list. Yield batches: " + BATCH_EXAMPLE,
    ),
    "records that are not bytes": (
        "json.dumps(order).encode() for",
        "json.dumps(order) for",
        (
            "source {name} ({file}): read yielded a record of type str. Yield bytes, as in "
            "json.dumps(record).encode()."
        ),
    ),
    "a return in place of a yield": (
        "yield",
        "return",
        "source {name} ({file}): read returned a SourceBatch. Yield batches: " + BATCH_EXAMPLE,
    ),
    "no description": (
        'self.description = "shop"',
        "pass",
        (
            "source {name} has no description. Set self.description to a text that identifies the data, such as "
            "the address that it reads. A producer continues only with the same one."
        ),
    ),
    "open without return": (
        "return cls()",
        "cls()",
        (
            "source {name}: open returned nothing. Return an object whose class derives from ReplayableSource, or "
            "from OneShotSource if it cannot return a record twice."
        ),
    ),
    "an error in open": (
        "return cls()",
        "return cls(context.options['limit'])",
        "source {name} failed: {file}:17: KeyError: 'limit'",
    ),
    "read without a position": (
        "read(self, position)",
        "read(self)",
        "source {name} failed: {file}: TypeError: ShopSource.read() takes 1 positional argument but 2 were given",
    ),
    "an error in the middle": (
        "json.dumps(order).encode() for",
        "json.dumps(order | {'share': 1 / (25 - order['id'])}).encode() for",
        "source {name} failed: {file}:22: ZeroDivisionError: division by zero",
    ),
    "the same position for all batches": (
        "orders], first)",
        "orders], 0)",
        (
            "source {name} ({file}): two batches have the position 0. Give each batch the position from which read "
            "returns its records again."
        ),
    ),
}


def open_shop(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> RecordSource:
    contract = load_contract("sensors")
    write_modules(folder, monkeypatch, shop_source=text)
    monkeypatch.chdir(folder)
    return open_source("shop_source:ShopSource", contract, create_record_format(contract), lambda: 0)


def read_values(batches: Iterator[SourceBatch]) -> list[bytes]:
    return [value for batch in batches for value in batch.values]


def test_a_valid_source_resumes_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_shop(tmp_path, monkeypatch, VALID)
    values = read_values(source.read(None))
    assert values == [b'{"id": %d}' % number for number in range(50)]
    assert read_values(read_rest(source, 20, 7)) == values[27:]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_this_message(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    valid, changed, message = MISTAKES[mistake]
    assert valid in VALID
    with pytest.raises(SourceError) as raised:
        read_values(open_shop(tmp_path, monkeypatch, VALID.replace(valid, changed, 1)).read(None))
    assert str(raised.value) == message.replace("{name}", "shop_source:ShopSource").replace(
        "{file}", "shop_source.py"
    )


def test_a_source_that_forgets_its_position_sends_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_shop(tmp_path, monkeypatch, VALID.replace("position or 0", "0"))
    assert len(read_values(source.read(None))) == 50
    with pytest.raises(
        SourceError, match=r"read\(20\) started at position 0\. Start at the position that read is"
    ):
        next(read_rest(source, 20, 10))
