"""Two files want one table or topic: the owner goes on, the newcomer is refused, and both files are named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.catalogs import WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.engine.upgrade.stored_plan import store_plan
from penstock.pipelines import catalog
from penstock.platform.services.stream_catalog import (
    find_definition_error,
    find_pipeline_error,
    list_stream_names,
    load_valid_plans,
    refuse_invalid_definition,
)

StartStream = Callable[[str], None]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartStream:
    """Store the definition of a stream, as its first start does."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return lambda name: store_plan(tmp_path / "home" / "streams" / name, catalog.load_plan(name))


def pipeline(name: str, *outputs: str) -> str:
    lines = "\n    ".join(outputs)
    return f"""
from penstock.stream import count, fixed, read

{name} = (
    read("sensors")
    .aggregate(n=count())
    .window(fixed("1 minute"))
    {lines}
)
"""


def refused() -> dict[str, str]:
    errors = {name: find_definition_error(name) for name in list_stream_names()}
    return {name: str(error) for name, error in errors.items() if error is not None}


def test_the_running_owner_goes_on_and_the_newcomer_is_refused(
    write: WriteCatalogFile, start: StartStream
) -> None:
    owner = write("orders_minute.py", pipeline("orders_minute", '.write("orders_minute")'))
    start("orders_minute")
    newcomer = write("clash.py", pipeline("clash", '.write("own")', '.write("orders_minute")'))
    assert refused() == {
        "clash": f"{newcomer}:9: write: table 'orders_minute' already belongs to pipeline orders_minute "
        f"({owner}:8). Choose another name"
    }
    assert [plan.name for plan in load_valid_plans()] == ["orders_minute"]
    with pytest.raises(DefinitionError, match="already belongs to pipeline orders_minute"):
        refuse_invalid_definition("clash")
    refuse_invalid_definition("orders_minute")
    newcomer.unlink()
    assert refused() == {}


def test_state_decides_before_names(write: WriteCatalogFile, start: StartStream) -> None:
    write("zebra.py", pipeline("zebra", '.write("apple")'))
    start("zebra")
    write("apple.py", pipeline("apple", '.write("apple")'))
    assert refused().keys() == {"apple"}


def test_without_state_the_table_of_its_own_name_is_a_pipelines(
    write: WriteCatalogFile, start: StartStream
) -> None:
    write("alpha.py", pipeline("alpha", '.write("omega")'))
    write("omega.py", pipeline("omega", '.write("omega")'))
    assert refused().keys() == {"alpha"}


@pytest.mark.parametrize("state_of", ["a removed file", "a broken file", "a file with another table"])
def test_a_stream_with_state_keeps_its_table_whatever_its_file_says(
    write: WriteCatalogFile, start: StartStream, state_of: str
) -> None:
    file = write("old.py", pipeline("old", '.write("rows")'))
    start("old")
    if state_of == "a removed file":
        file.unlink()
    elif state_of == "a broken file":
        file.write_text("old = ")
    else:
        file.write_text(pipeline("old", '.write("others")'))
    catalog.load_plan.cache_clear()
    write("new.py", pipeline("new", '.write("rows")'))
    hint = "its file was removed: `penstock stream drop old`" if state_of == "a removed file" else f"{file}"
    assert f"table 'rows' already belongs to pipeline old ({hint}" in refused()["new"]


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ('.write("rows", mode="log")', '.write("rows", mode="log")', "table 'rows'"),
        ('.write("rows", mode="complete")', '.write("rows", mode="complete")', "table 'rows'"),
        ('.write("rows", mode="final")', '.write("rows", mode="final")', "table 'rows'"),
        ('.write("Rows")', '.write("rows")', "table 'rows'"),
        ('.write("x").publish("changes")', '.write("y").publish("changes")', "topic 'changes'"),
    ],
)
def test_outputs_of_every_kind_count(
    write: WriteCatalogFile, start: StartStream, first: str, second: str, problem: str
) -> None:
    write("first.py", pipeline("first", first))
    write("second.py", pipeline("second", second))
    assert refused().keys() == {"second"}
    assert f"{problem} already belongs to pipeline first" in refused()["second"]


def test_tables_of_one_name_and_different_kinds_do_not_clash(
    write: WriteCatalogFile, start: StartStream
) -> None:
    write("first.py", pipeline("first", '.write("rows")'))
    write("second.py", pipeline("second", '.write("rows", mode="log")'))
    assert refused() == {}


def test_names_that_differ_in_case_share_their_derived_tables(
    write: WriteCatalogFile, start: StartStream
) -> None:
    write("orders.py", pipeline("orders", '.write("a")'))
    start("orders")
    write("Orders.py", pipeline("Orders", '.write("b")'))
    assert "its table late/Orders already belongs to pipeline orders" in refused()["Orders"]


def test_a_topic_for_dead_letters_is_not_published_to(write: WriteCatalogFile, start: StartStream) -> None:
    write("alerts.py", pipeline("alerts", '.publish("sensors.dead-letters")'))
    assert "holds the dead letters of topic sensors" in refused()["alerts"]


def test_a_pipeline_does_not_have_the_name_of_an_archive(write: WriteCatalogFile, start: StartStream) -> None:
    write("archive-sensors.yaml", "read: sensors")
    assert "stream archive-sensors is the archive of topic sensors" in str(
        find_pipeline_error("archive-sensors")
    )
    assert refused() == {}, "the archive itself is not affected"
