"""A pipeline that cannot be loaded is reported in one sentence with its file. Other pipelines load."""

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.engine.errors import DefinitionError
from penstock.pipelines import catalog

FIX = "Fix the file; other pipelines are not affected"
BROKEN = {
    "a syntax error": ("x = (", f"broken.py:1: SyntaxError: '(' was never closed. {FIX}"),
    "a missing import": (
        "import missing_module",
        f"broken.py:1: ModuleNotFoundError: No module named 'missing_module'. {FIX}",
    ),
    "a missing import of a helper": (
        "\nfrom broken_helper import x",
        "broken_helper.py:1: ModuleNotFoundError: No module named 'missing_module' (imported by ",
    ),
    "an exception": ("x = 1\n1 / 0", f"broken.py:2: ZeroDivisionError: division by zero. {FIX}"),
    "an exit": ("import sys\nsys.exit(3)", f"broken.py:2: SystemExit: 3. {FIX}"),
    "no pipeline of its name": (
        "other = 1",
        "broken.py: broken: the file defines no pipeline of this name. Define broken = read(...) in the file",
    ),
    "a topic without contract": (
        "from penstock.stream import read\n\nbroken = read('nothing')",
        "broken.py:3: read: there is no contract for 'nothing'. Known topics: ",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_named_and_other_files_are_loaded(
    write: WriteCatalogFile, text: str, message: str
) -> None:
    write("good.py", PIPELINE_TEMPLATE.format(name="good"))
    write("../broken_helper.py", "import missing_module")
    file = write("broken.py", text)
    with pytest.raises(DefinitionError) as raised:
        catalog.reload_plan("broken")
    assert message in str(raised.value)
    assert str(file.parent.parent) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert catalog.reload_plan("good").name == "good"


def test_a_binary_file_is_named_in_its_error(write: WriteCatalogFile) -> None:
    write("broken.yaml", "").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DefinitionError, match=r"broken\.yaml"):
        catalog.reload_plan("broken")


def test_a_fixed_file_is_loaded_and_so_is_one_with_a_fixed_helper(write: WriteCatalogFile) -> None:
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
