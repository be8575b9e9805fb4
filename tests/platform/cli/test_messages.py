"""What commands print when they cannot ask, cannot check, or skip something."""

import io

import pytest

from penstock.ingestion.topics import TopicPlan
from penstock.platform.cli.commands.topics import TopicDifferences, _print_differences
from penstock.platform.cli.confirmation import confirm


def test_a_command_without_a_terminal_says_how_to_confirm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(Exception, match=r"Apply this upgrade\? There is no terminal .* with --yes") as raised:
        confirm("Apply this upgrade?")
    assert raised.value.exit_code == 2


def test_an_answer_may_come_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    confirm("Apply this upgrade?")


def test_an_invalid_contract_is_printed_before_the_plan_and_nothing_is_called_equal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    differences = TopicDifferences(TopicPlan(()), {}, {"orders": "orders.yaml:3: 'decimel' is not a type"})
    _print_differences(differences, (), as_json=False, empty_text="no changes: topics match their contracts")
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "orders is skipped until its contract is fixed: orders.yaml:3: 'decimel' is not a type"
    ]
    assert printed.out.splitlines() == ["no changes for the topics with a valid contract"]


def test_a_table_without_a_suite_gets_an_example_of_one(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.platform.services.expectations.list_suites", lambda: ())
    result = run("check", "latest/word_count")
    assert result.code == 2
    assert "nothing is expected of 'latest/word_count' yet. To check it, write " in result.err
    assert "suites/latest/word_count.yaml, for example: expectations: [{type: expect_column_" in result.err
