"""The commands of docs/avg.md show the tables of the page."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.platform.cli.main import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path("pipelines/docs/avg.md").read_text("utf-8")
TOOLS, PENSTOCK = ".venv/bin/python -m penstock.infra.kafka_tools ", ".venv/bin/penstock "
Means = dict[str, tuple[float, int]]


def list_commands() -> list[str]:
    """List the commands of the page with their input."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    return re.findall(r"^\.venv/bin/.*?(?:<<END\n.*?\nEND)?$", blocks, re.MULTILINE | re.DOTALL)


def list_tables() -> Iterator[Means]:
    """List the tables of means on the page."""
    for table in re.findall(r"\| key \| mean \| values \|\n.*\n((?:\|.*\n)+)", PAGE):
        rows = (row.strip("|").split("|") for row in table.splitlines())
        yield {key.strip(): (float(mean), int(values)) for key, mean, values in rows}


def parse_typed_records(line: str) -> list[dict[str, Any]]:
    """Return the records that a command gets as input."""
    return [json.loads(record) for record in line.splitlines() if record.startswith("{")]


@pytest.mark.spark
@pytest.mark.kafka
def test_the_commands_of_the_page_show_its_tables(
    spark: "SparkSession", broker: LocalBroker, jar_directory: Path, tmp_path: Path
) -> None:
    runner, expected, records = None, list_tables(), list[dict[str, Any]]()
    for line in list_commands():
        match line.removeprefix(PENSTOCK):
            case "stream start running_avg":
                runner = StreamRunner(catalog.load_plan("running_avg"), spark, broker, tmp_path)
            case "table show running_avg":
                assert runner is not None
                runner.run_until_read(len(records))
                assert read_means(runner) == next(expected)
            case _:
                output = run_tool(line, broker, jar_directory)
                records += parse_typed_records(line)
                if "--from-beginning" in line:
                    assert [json.loads(read) for read in output.splitlines()] == records
    assert next(expected, None) is None
    assert len(records) == 8


def run_tool(line: str, broker: LocalBroker, jars: Path) -> str:
    """Run a command of the page on the test broker and return its output."""
    command = line.replace(TOOLS, f"{sys.executable} -m penstock.infra.kafka_tools --jars {jars} ")
    command = command.replace("127.0.0.1:9092", broker.bootstrap)
    return subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, text=True, timeout=90, check=True
    ).stdout


def read_means(runner: StreamRunner) -> Means:
    rows = runner.table("latest/running_avg").to_pylist()
    return {row["key"]: (row["mean"], row["values"]) for row in rows}


def test_every_command_of_the_page_exists() -> None:
    assert len(list_commands()) == 7
    for line in list_commands():
        assert line.startswith((TOOLS, PENSTOCK)), line
        if line.startswith(PENSTOCK):
            words, command = line.removeprefix(PENSTOCK).split(), penstock
            while isinstance(command, click.Group):
                command = command.get_command(click.Context(command), words.pop(0))
            assert command is not None, line
            command.make_context(line, words)
