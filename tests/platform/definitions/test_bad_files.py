"""Whatever is wrong with one file of the catalog: Dagster's definitions load, with everything else in them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from dagster import AssetKey, AssetSpec, DagsterInvalidConfigError, Definitions, validate_run_config
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.upgrade.stored_plan import store_plan
from penstock.pipelines import catalog, guarded_load
from penstock.platform.definitions import asset_specs, failure_sensor
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.discovery import merge_definitions
from penstock.platform.definitions.streams import audit_checks
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.settings import load_settings

GOOD = PIPELINE_TEMPLATE.format(name="good")
YAML_PIPELINE = """
    read: sensors
    aggregate: {n: count()}
    window: {fixed: {size: 1 minute}}
    write: rows
"""
OUTSIDE_SINK = """
    from dataclasses import dataclass
    from typing import ClassVar

    from penstock.engine.sinks.pane_log import PaneLog
    from penstock.stream import count, fixed, read

    @dataclass(frozen=True)
    class Rows(PaneLog):
        folder: ClassVar[str] = "FOLDER"

    NAME = (
        read("sensors").aggregate(n=count()).window(fixed("1 minute"))
        .write("good", mode="penstock.pipelines.catalog.NAME:Rows")
    )
"""
VALID = PIPELINE_TEMPLATE.format(name="NAME")
BAD_FILES = {
    "syntax.py": "NAME = (",
    "missing_import.py": "import no_such_module",
    "exception.py": "1 / 0",
    "exit.py": "import sys; sys.exit(0)",
    "no_exception.py": "raise BaseException",
    "endless.py": "while True: pass",
    "empty.py": "",
    "no_utf8.yaml": "\udcff",
    "broken_link.py": "-> nowhere",
    "table_of_another.py": VALID.replace('("NAME")', '("good")'),
    "Good.py": VALID,
    "twice.py": VALID,
    "twice.yaml": YAML_PIPELINE,
    "hy-phen.yaml": YAML_PIPELINE,
    "hy.phen.yaml": YAML_PIPELINE,
    "hy phen.yaml": YAML_PIPELINE,
    "umläut.yaml": YAML_PIPELINE,
    "archive-sensors.yaml": YAML_PIPELINE,
    "sink_of_streams.py": OUTSIDE_SINK.replace("FOLDER", "streams"),
    "sink_of_topics.py": OUTSIDE_SINK.replace("FOLDER", "topics"),
    "sink_of_runs.py": OUTSIDE_SINK.replace("FOLDER", "runs"),
    "sink_without_folder.py": OUTSIDE_SINK.replace("FOLDER", ""),
    "sink_in_strange_folder.py": OUTSIDE_SINK.replace("FOLDER", "a b/ü"),
}
ODD_FILES = {
    "broken_sql.py": VALID.replace('("sensors")', '("sensors").sql("SELECT , FROM (")'),
    "docstring.py": '"""{{ }} </a> \\x00 ${x} %s"""\n' + dedent(VALID),
    "hy_phen.yaml": YAML_PIPELINE,
}
"""Files that look strange to Dagster. They are wrong for Spark only, or not at all."""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Definitions]:
    """Build the definitions as the code location does, and load them as Dagster does."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(guarded_load, "IMPORT_TIMEOUT_S", 0.5)

    def build() -> Definitions:
        definitions = merge_definitions(DefinitionsContext(load_settings().settings))
        Definitions.validate_loadable(definitions)
        return definitions

    return build


def write_files(write: WriteCatalogFile, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = write(name, "")
        if text.startswith("-> "):
            path.unlink()
            path.symlink_to(text.removeprefix("-> "))
        else:
            content = dedent(text).replace("NAME", path.stem)
            path.write_bytes(content.encode("utf-8", "surrogateescape"))


def test_whatever_is_wrong_with_files_everything_else_loads(
    write: WriteCatalogFile, build: Callable[[], Definitions], tmp_path: Path
) -> None:
    write("good.py", GOOD)
    store_plan(tmp_path / "home" / "streams" / "good", catalog.load_plan("good"))
    assets_without, jobs_without = describe(build())
    assert {"streams/good", "latest/good", "runs/good", "topics/sensors"} <= assets_without
    assert {"stream_start", "backfill_good", "audit_streams"} <= jobs_without
    (tmp_path / "home" / "streams" / "removed").mkdir()
    write_files(write, BAD_FILES | ODD_FILES)
    definitions = build()
    assets, jobs = describe(definitions)
    assert assets_without <= assets
    assert jobs_without <= jobs
    for job in jobs:
        definitions.resolve_job_def(job)
    config = {"stream": "removed", "wait_seconds": 0.0}
    assert validate_run_config(definitions.resolve_job_def("stream_stop"), config)
    with pytest.raises(DagsterInvalidConfigError):
        validate_run_config(definitions.resolve_job_def("stream_start"), config)
    graph = definitions.resolve_asset_graph()
    invalid = [spec for spec in definitions.resolve_all_asset_specs() if "invalid" in spec.kinds]
    assert len(invalid) == len({Path(name).stem for name in BAD_FILES}), [item.key for item in invalid]
    failing = {key.asset_key for key in graph.asset_check_keys if key.name == "pipeline_valid"}
    assert failing == {spec.key for spec in invalid}
    descriptions = "\n".join(spec.description or "" for spec in invalid)
    assert [name for name in BAD_FILES if f"/{name}" not in descriptions] == []
    assert {"streams/broken_sql", "streams/docstring", "streams/hy_phen"} <= assets


def test_a_module_of_definitions_that_fails_is_left_out_and_shown(
    write: WriteCatalogFile, build: Callable[[], Definitions], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("good.py", GOOD)
    without, jobs_without = describe(build())

    def fail(_context: object) -> Definitions:
        raise ValueError("no audits today")

    def clash(context: DefinitionsContext) -> Definitions:
        return Definitions(assets=[AssetSpec(AssetKey(["streams", "good"]), description="twice")])

    monkeypatch.setattr(audit_checks, "build_definitions", fail)
    monkeypatch.setattr(failure_sensor, "build_definitions", clash)
    definitions = build()
    assets, jobs = describe(definitions)
    assert assets - without == {"definitions/audit_checks", "definitions/failure_sensor"}
    assert jobs_without - jobs == {"audit_streams"}
    checks = {key.to_user_string() for key in definitions.resolve_asset_graph().asset_check_keys}
    assert {
        "definitions/audit_checks:definitions_valid",
        "definitions/failure_sensor:definitions_valid",
    } <= checks


def test_a_pipeline_that_dagster_refuses_for_an_unknown_reason_is_left_out(
    write: WriteCatalogFile, build: Callable[[], Definitions], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("good.py", GOOD)
    write("bad.py", PIPELINE_TEMPLATE.format(name="bad"))
    describe_table = asset_specs.table_asset_spec

    def fail_for_bad(pipeline: CatalogPipeline, *more: Any) -> AssetSpec:
        if pipeline.name == "bad":
            raise ValueError("a surprise")
        return describe_table(pipeline, *more)

    monkeypatch.setattr(asset_specs, "table_asset_spec", fail_for_bad)
    definitions = build()
    assert {"streams/good", "latest/good", "streams/bad"} <= describe(definitions)[0]
    description = definitions.resolve_asset_graph().get(AssetKey(["streams", "bad"])).description
    assert "Dagster refuses it: ValueError: a surprise" in description


def describe(definitions: Definitions) -> tuple[set[str], set[str]]:
    """Return the assets and the jobs."""
    assets = {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()}
    return assets, {job.name for job in definitions.resolve_all_job_defs()}
