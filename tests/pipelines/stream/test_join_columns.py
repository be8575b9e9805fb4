"""A join without a column list takes all columns of both inputs and renames those that collide."""

import pytest

from penstock.engine.plan.joins import JOIN_KINDS
from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.stream import Pipeline, count, fixed, join, read


def count_per_minute(topic: str, key: str) -> Pipeline:
    """Count the records of a topic by key and minute."""
    counts = read(topic).key(key).aggregate(**{topic.replace("-", "_"): count()})
    return counts.window(fixed("1 minute")).write(f"{topic}_minute")


@pytest.mark.parametrize("how", JOIN_KINDS)
def test_window_columns_of_both_stages_get_their_names_as_prefix(how: str) -> None:
    sides = (count_per_minute("impressions", "id"), count_per_minute("ad-clicks", "id"))
    plan = join(*sides, by="id", how=how).write("seen", mode="log").plan
    joined = plan.stages[-1].join
    assert joined is not None
    left_columns = ["impressions", "impressions_minute_window_end", "impressions_minute_window_start"]
    right_columns = ["ad_clicks", "ad-clicks_minute_window_end", "ad-clicks_minute_window_start"]
    expected = left_columns if how in ("semi", "anti") else [*left_columns, *right_columns]
    assert [column.name for column in joined.columns] == expected


def test_a_field_with_the_name_of_a_pane_column_gets_its_input_as_prefix() -> None:
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
