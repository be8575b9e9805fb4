"""How a pipeline is shown is said beside it, in Python or in YAML, and is no part of what it is."""

import pytest
from tests.catalogs import Write

from penstock.pipelines import catalog
from penstock.pipelines.demonstration import Demo
from penstock.pipelines.errors import DefinitionError

PLAIN = """
read: sensors
key: device
aggregate: {n: count()}
window: {fixed: 1 minute}
write: shown
"""


def test_a_file_in_yaml_says_how_it_is_shown_and_stays_the_same_pipeline(write: Write) -> None:
    write("shown.yaml", PLAIN)
    before = catalog.load_anew("shown")
    assert catalog.demonstration("shown") == Demo()
    write("shown.yaml", f"{PLAIN}demo: {{rate: 5, last: 2 minutes, key: [device-1]}}")
    assert catalog.load_anew("shown") == before
    assert catalog.demonstration("shown") == Demo(rate=5.0, last="2 minutes", key=("device-1",))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("fast", "'fast'.*Write some of: rate, last, step"),
        ("{speed: 5}", "'speed'.*Write some of: rate, last, step"),
        ("{rate: often}", "Expected `float`, got `str`"),
    ],
)
def test_what_cannot_be_said_of_a_demonstration_is_refused_with_the_file(
    write: Write, said: str, problem: str
) -> None:
    file = write("shown.yaml", f"{PLAIN}demo: {said}")
    catalog.load_anew("shown")
    with pytest.raises(DefinitionError, match=problem) as refused:
        catalog.demonstration("shown")
    assert str(file) in str(refused.value)
