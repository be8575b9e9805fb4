"""A SQL file in the catalog is a pipeline like any other: plan, description, demonstration, places of problems."""

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan
from penstock.pipelines import catalog
from penstock.pipelines.table_claims import list_pipeline_outputs, locate_output
from penstock.stream import count, fixed, mean, read

STATEMENT = """\
-- Readings of each device.
-- Late ones correct them.
CREATE STREAM readings WITH (demo.rate = 5, demo.last = '2 minutes') AS
SELECT device, COUNT(*) AS readings, AVG(temperature) AS mean
FROM sensors
GROUP BY device, TUMBLE(INTERVAL '1' MINUTE)
INTO LATEST(readings), LOG(readings_log);
"""


def twin() -> Plan:
    """The pipeline of STATEMENT in Python."""
    pipeline = read("sensors").key("device").aggregate(readings=count(), mean=mean("temperature"))
    windowed = pipeline.window(fixed("1 minute"))
    return windowed.write("readings").write("readings_log", mode="log").to_plan("readings")


def test_a_sql_file_is_a_pipeline_of_the_catalog(write: WriteCatalogFile) -> None:
    write("readings.sql", STATEMENT)
    assert catalog.pipeline_names() == ("readings",)
    assert catalog.reload_plan("readings") == twin()
    assert catalog.read_description("readings") == "Readings of each device.\nLate ones correct them."
    assert (catalog.load_demo("readings").rate, catalog.load_demo("readings").last) == (5, "2 minutes")


def test_a_problem_of_the_plan_has_line_and_column(write: WriteCatalogFile) -> None:
    file = write("readings.sql", STATEMENT.replace("AVG(temperature)", "AVG(temprature)"))
    with pytest.raises(DefinitionError) as raised:
        catalog.reload_plan("readings")
    assert str(raised.value).startswith(f"{file}:4:42: aggregate.mean: ")
    assert "Did you mean 'temperature'?" in str(raised.value)


def test_a_changed_file_changes_the_plan(write: WriteCatalogFile) -> None:
    write("readings.sql", STATEMENT)
    before = catalog.reload_plan("readings")
    write("readings.sql", STATEMENT.replace("'1' MINUTE", "'2' MINUTES"))
    assert catalog.reload_plan("readings") != before


def test_a_table_is_found_where_the_statement_names_it(write: WriteCatalogFile) -> None:
    file = write("readings.sql", STATEMENT)
    outputs = {output.name: output for output in list_pipeline_outputs(catalog.reload_plan("readings"))}
    assert locate_output(file, outputs["readings_log"]) == f"{file}:7:28"


def test_a_second_file_of_the_name_is_refused(write: WriteCatalogFile) -> None:
    write("readings.sql", STATEMENT)
    write("readings.py", PIPELINE_TEMPLATE.format(name="readings"))
    with pytest.raises(
        DefinitionError, match=r"readings\.py and .*readings\.sql both define pipeline readings"
    ):
        catalog.reload_plan("readings")
