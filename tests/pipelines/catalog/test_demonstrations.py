"""How a pipeline is shown is said beside it, in Python or in YAML, and is no part of what it is."""

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


def test_a_file_in_yaml_says_how_it_is_shown_and_stays_the_same_pipeline(write: WriteCatalogFile) -> None:
    write("shown.yaml", PLAIN)
    before = catalog.reload_plan("shown")
    assert catalog.load_demo("shown") == Demo()
    write("shown.yaml", f"{PLAIN}demo: {{rate: 5, last: 2 minutes, key: [device-1]}}")
    assert catalog.reload_plan("shown") == before
    assert catalog.load_demo("shown") == Demo(rate=5.0, last="2 minutes", key=("device-1",))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("fast", "'fast'.*Write some of: rate, last, step"),
        ("{speed: 5}", "'speed'.*Write some of: rate, last, step"),
        ("{rate: often}", "Expected `float`, got `str`"),
    ],
)
def test_what_cannot_be_said_of_a_demonstration_is_refused_with_the_file(
    write: WriteCatalogFile, said: str, problem: str
) -> None:
    file = write("shown.yaml", f"{PLAIN}demo: {said}")
    catalog.reload_plan("shown")
    with pytest.raises(DefinitionError, match=problem) as refused:
        catalog.load_demo("shown")
    assert str(file) in str(refused.value)
