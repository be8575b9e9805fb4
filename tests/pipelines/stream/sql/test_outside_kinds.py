"""Kinds that no file of the tree knows are words of SQL, as `module:name` and by the name of their entry point."""

from pathlib import Path
from typing import get_args

import pytest
from tests.installed_kinds import installed_kinds, write_modules
from tests.pipelines.outside_kinds import AGGREGATES, TRIGGER, WINDOW

from penstock.stream import from_document
from penstock.stream.forms.form_writer import PipelineForm, read_form, write_pipeline
from penstock.stream.keyword_registries import WINDOW_KEYWORDS
from penstock.stream.sql_loader.document import load_sql_text

FORMS: tuple[PipelineForm, ...] = get_args(PipelineForm)
STATEMENT = """CREATE STREAM shifts AS
SELECT device, `outside_aggregate:most_frequent`(site) AS site
FROM sensors
GROUP BY device, {window}((0, 28800000), LENGTH => INTERVAL '9' HOURS)
EMIT REPEATEDLY(`outside_trigger:after_inactivity`(INTERVAL '1' MINUTE))
INTO LATEST(shifts)"""
DOCUMENT = {
    "read": "sensors",
    "key": "device",
    "aggregate": {"site": "outside_aggregate:most_frequent(site)"},
    "window": {"outside_window:shifts": {"starts": [0, 28_800_000], "length": "9 hours"}},
    "trigger": {"repeatedly": {"outside_trigger:after_inactivity": "1 minute"}},
    "write": "shifts",
}


def test_a_kind_of_a_user_is_a_word_of_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"outside_window": WINDOW, "outside_aggregate": AGGREGATES, "outside_trigger": TRIGGER}
    write_modules(tmp_path, monkeypatch, **modules)
    plan = from_document(DOCUMENT).to_plan("shifts")
    named = load_sql_text(STATEMENT.format(window="`outside_window:shifts`"), "shifts")
    assert named.to_plan("shifts") == plan
    with installed_kinds(tmp_path, monkeypatch, WINDOW_KEYWORDS, {}, shifts="outside_window:shifts"):
        installed = load_sql_text(STATEMENT.format(window="SHIFTS"), "shifts")
        assert installed.to_plan("shifts") == plan
        for form in FORMS:
            assert read_form("shifts", write_pipeline("shifts", installed, form), form) == plan
