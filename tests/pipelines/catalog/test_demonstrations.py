"""Demonstration settings of a pipeline, in Python or YAML. They do not change its plan."""

import pytest
from tests.catalogs import WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.pipelines import catalog
from penstock.pipelines.demonstration import Demo

PLAIN = """
read: sensors
key: device
aggregate: {n: count()}
window: {fixed: 1 minute}
write: shown
"""


def test_demo_settings_in_yaml_are_read_and_do_not_change_the_plan(write: WriteCatalogFile) -> None:
    write("shown.yaml", PLAIN)
    plan = catalog.reload_plan("shown")
    assert catalog.load_demo("shown") == Demo()
    write("shown.yaml", f"{PLAIN}demo: {{rate: 5, last: 2 minutes, key: [device-1]}}")
    assert catalog.reload_plan("shown") == plan
    assert catalog.load_demo("shown") == Demo(rate=5.0, last="2 minutes", key=("device-1",))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("fast", "'fast'.*Write some of: rate, last, step"),
        ("{speed: 5}", "'speed'.*Write some of: rate, last, step"),
        ("{rate: often}", "Expected `float`, got `str`"),
    ],
)
def test_invalid_demo_settings_are_refused_with_the_file(
    write: WriteCatalogFile, settings: str, problem: str
) -> None:
    file = write("shown.yaml", f"{PLAIN}demo: {settings}")
    catalog.reload_plan("shown")
    with pytest.raises(DefinitionError, match=problem) as raised:
        catalog.load_demo("shown")
    assert str(file) in str(raised.value)
