"""A join that names no columns takes all of both inputs, whatever they are called."""

import pytest

from penstock.engine.plan.joins import JOIN_KINDS
from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.stream import Pipeline, count, fixed, join, read


def per_minute(topic: str, key: str) -> Pipeline:
    """A stage over a topic."""
    counted = read(topic).key(key).aggregate(**{topic.replace("-", "_"): count()})
    return counted.window(fixed("1 minute")).write(f"{topic}_minute")


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_stages_are_joined_without_naming_columns(how: str) -> None:
    sides = (per_minute("impressions", "id"), per_minute("ad-clicks", "id"))
    plan = join(*sides, by="id", how=how).write("seen", mode="log").plan
    joined = plan.stages[-1].join
    assert joined is not None
    of_left = ["impressions", "impressions_minute_window_end", "impressions_minute_window_start"]
    of_right = ["ad_clicks", "ad-clicks_minute_window_end", "ad-clicks_minute_window_start"]
    expected = of_left if how in ("semi", "anti") else [*of_left, *of_right]
    assert [column.name for column in joined.columns] == expected


def test_a_field_that_is_called_as_a_column_of_panes_stands_behind_its_inputs_name() -> None:
    fields = (
        ContractField("id", "string", "An id."),
        ContractField("at", "timestamp", "A time."),
        ContractField("kind", "string", "A kind."),
    )
    events = Contract("events", "Events.", fields, event_time="at")
    plan = join(read(events), read("ad-clicks"), by="id", how="semi").window(fixed("1 minute"))
    joined = plan.write("seen", mode="log").plan.only_stage.join
    assert joined is not None
    assert [column.name for column in joined.columns] == ["at", "events_kind"]
