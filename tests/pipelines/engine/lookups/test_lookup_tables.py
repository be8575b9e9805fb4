"""Lookup tables are read at a version; an invalid table or lookup is reported."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.engine.errors import DefinitionError, LookupTableError
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import LookupStep
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import delta_storage_options
from penstock.engine.tables.lookup_tables import LookupTables
from penstock.stream import count, fixed, from_document, read

STEP = LookupStep("latest/cards", ("card",), (Column("limit", "BIGINT"), Column("owner", "STRING")))


def make_cards(*rows: tuple[str | None, int, str]) -> pa.Table:
    card, limit, owner = ([row[position] for row in rows] for position in range(3))
    return pa.table({"card": pa.array(card, pa.string()), "limit": limit, "owner": owner, "other": limit})


def write_cards(warehouse: StoragePath, rows: pa.Table, mode: Any = "overwrite") -> None:
    write_deltalake(
        str(warehouse / "latest/cards"), rows, mode=mode, storage_options=delta_storage_options(warehouse)
    )


def sort_rows(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)


def test_an_old_version_keeps_its_rows(somewhere: StoragePath) -> None:
    write_cards(somewhere, make_cards(("a", 1, "x"), (None, 9, "nobody")))
    tables = LookupTables([STEP], somewhere)
    assert tables.read_versions() == {"latest/cards": 0}
    first = tables.read_rows(STEP, 0)
    write_cards(somewhere, make_cards(("a", 2, "y"), ("b", 3, "z")))
    assert tables.read_versions() == {"latest/cards": 1}
    assert sort_rows(tables.read_rows(STEP, 1)) == [
        {"card": "a", "limit": 2, "owner": "y"}, {"card": "b", "limit": 3, "owner": "z"}
    ]  # fmt: skip
    assert (
        sort_rows(tables.rows_reader_at({"latest/cards": 0})(STEP))
        == sort_rows(first)
        == [{"card": "a", "limit": 1, "owner": "x"}]
    )


def test_a_vacuumed_version_is_reported(tmp_path: Path) -> None:
    write_cards(tmp_path, make_cards(("a", 1, "x")))
    write_cards(tmp_path, make_cards(("a", 2, "y")))
    DeltaTable(tmp_path / "latest/cards").vacuum(0, dry_run=False, enforce_retention_duration=False)
    message = r"^latest/cards: version 0, which the batch read when it started, was vacuumed\. Restore its"
    with pytest.raises(LookupTableError, match=message):
        LookupTables([STEP], tmp_path).read_rows(STEP, 0)
    (tmp_path / "latest/cards/_delta_log/00000000000000000000.json").unlink()
    with pytest.raises(LookupTableError, match=message):
        LookupTables([STEP], tmp_path).read_rows(STEP, 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            make_cards(("a", 1, "x"), ("a", 2, "y")),
            "version 0 has 2 rows with card=a. Look up a table with unique keys",
        ),
        (
            make_cards(("a", 1, "x")).drop_columns(["owner"]),
            "it has no column owner. Available columns: card, limit, other",
        ),
        (
            pa.table({"card": ["a"], "limit": ["much"], "owner": ["x"]}),
            "its column limit is string and cannot be cast to BIGINT. Declare its type",
        ),
        (
            make_cards(*((str(n), n, "x") for n in range(11))),
            "it has 11 rows, but a lookup table may have at most 10",
        ),
    ],
)
def test_an_invalid_lookup_table_is_reported(tmp_path: Path, rows: pa.Table, message: str) -> None:
    write_cards(tmp_path, rows)
    with pytest.raises(LookupTableError, match="latest/cards: ") as error:
        LookupTables([STEP], tmp_path, max_rows=10).read_rows(STEP, 0)
    assert message in str(error.value)


def test_a_missing_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        LookupTableError,
        match=f"there is no table at {tmp_path}/latest/cards. Start the stream that writes it",
    ):
        LookupTables([STEP], tmp_path).read_versions()


def test_an_absolute_path_is_used_unchanged(tmp_path: Path) -> None:
    elsewhere = LookupStep(str(tmp_path / "latest/cards"), STEP.on, STEP.columns)
    write_cards(tmp_path, make_cards(("a", 1, "x")))
    assert LookupTables([elsewhere], Path("/nowhere")).read_versions() == {elsewhere.table: 0}


SENSORS_WITH_ROOM = read("sensors").lookup("latest/rooms", on="device", columns={"room": "STRING"})
COUNT_BY_ROOM = SENSORS_WITH_ROOM.key("room").aggregate(n=count()).window(fixed("1 minute")).write("by_room")


def test_a_plan_with_a_lookup_round_trips_through_json_and_yaml() -> None:
    assert plan_from_dict(plan_to_dict(COUNT_BY_ROOM.plan)) == COUNT_BY_ROOM.plan
    document = {
        "read": "sensors",
        "steps": [{"lookup": {"table": "latest/rooms", "on": "device", "columns": {"room": "STRING"}}}],
        "key": "room",
        "aggregate": {"n": "count()"},
        "window": {"fixed": "1 minute"},
        "write": "by_room",
    }
    assert fingerprint(from_document(document).plan) == fingerprint(COUNT_BY_ROOM.plan)


@pytest.mark.parametrize(
    ("table", "on", "columns", "message"),
    [
        (
            "latest/rooms",
            "divice",
            {"room": "STRING"},
            r"lookup\.on: the records have no field 'divice'\. Did you mean 'device'",
        ),
        (
            "latest/rooms",
            "device",
            {"temperature": "DOUBLE"},
            r"temperature: the records have a field of this name",
        ),
        ("latest/rooms", "device", {}, r"lookup\.columns: no columns"),
        ("latest/rooms", [], {"room": "STRING"}, r"lookup\.on: no field"),
        ("latest/rooms", "device", {"device": "STRING"}, "it is a lookup key"),
    ],
)
def test_an_invalid_lookup_is_refused_when_it_is_defined(
    table: str, on: Any, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        _ = (
            read("sensors").lookup(table, on=on, columns=columns).key("device")
            .aggregate(n=count()).window(fixed("1 minute")).write("t").plan
        )  # fmt: skip


def test_a_stage_over_panes_has_no_lookups() -> None:
    after = (
        COUNT_BY_ROOM.then()
        .lookup("latest/rooms", on="room", columns={"floor": "BIGINT"})
        .aggregate(n=count())
    )
    with pytest.raises(DefinitionError, match="a lookup step over panes"):
        _ = after.window(fixed("1 hour")).write("t").plan
