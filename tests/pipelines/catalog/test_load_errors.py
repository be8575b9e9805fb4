"""A pipeline that cannot be loaded says so in one sentence, with its file, and troubles no other."""

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.pipelines import catalog

BROKEN = {
    "no Python": ("x = (", "SyntaxError: '(' was never closed"),
    "what it imports is not there": (
        "import nobody_wrote_this",
        "No module named 'nobody_wrote_this', at line 1",
    ),
    "what a module of its own imports is not there": ("\nfrom broken_helper import x", "at line 1 of "),
    "an error of its own": ("x = 1\n1 / 0", "ZeroDivisionError: division by zero, at line 2"),
    "an end of the process": ("import sys\nsys.exit(3)", "SystemExit: 3, at line 2"),
    "no pipeline of its name": ("other = 1", "defines no pipeline of this name"),
    "a topic without contract": (
        "from penstock.stream import read\nbroken = read('nothing')",
        "no contract for 'nothing'",
    ),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_told_by_name_and_the_others_are_loaded(
    write: WriteCatalogFile, text: str, says: str
) -> None:
    write("good.py", PIPELINE_TEMPLATE.format(name="good"))
    write("../broken_helper.py", "import nobody_wrote_this")
    file = write("broken.py", text)
    with pytest.raises(DefinitionError) as caught:
        catalog.reload_plan("broken")
    assert says in str(caught.value)
    assert str(file.parent.parent) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert catalog.reload_plan("good").name == "good"


def test_what_is_no_text_is_told_like_any_other_fault(write: WriteCatalogFile) -> None:
    write("broken.yaml", "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match=r"broken\.yaml"):
        catalog.reload_plan("broken")


def test_a_mended_file_is_loaded_and_so_is_one_whose_helper_was_mended(write: WriteCatalogFile) -> None:
    write("one.py", "one = ")
    write("_shared.py", "1 / 0")
    write(
        "two.py",
        "    from penstock.pipelines.catalog._shared import STEP" + PIPELINE_TEMPLATE.format(name="two"),
    )
    for name in ("one", "two"):
        with pytest.raises(DefinitionError):
            catalog.reload_plan(name)
    write("one.py", PIPELINE_TEMPLATE.format(name="one"))
    write("_shared.py", "STEP = 1")
    assert {catalog.reload_plan(name).name for name in ("one", "two")} == {"one", "two"}
