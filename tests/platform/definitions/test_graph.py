"""The asset graph, pinned."""

from collections.abc import Callable

from dagster import AssetKey, Definitions


def test_a_topic_leads_to_its_stream_and_a_stream_to_its_tables(make: Callable[..., Definitions]) -> None:
    graph = make().resolve_asset_graph()
    found = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert found == {
        "topics/sensors": [],
        "streams/minute": ["topics/sensors"],
        "tables/minute_latest": ["streams/minute"],
        "tables/minute_panes": ["streams/minute"],
    }


def test_assets_say_what_they_are(make: Callable[..., Definitions]) -> None:
    graph = make().resolve_asset_graph()
    topic, table = (
        graph.get(AssetKey(["topics", "sensors"])),
        graph.get(AssetKey(["tables", "minute_latest"])),
    )
    assert (topic.group_name, topic.owners, topic.description) == ("topics", ["team:data"], "Readings.")
    assert (table.group_name, sorted(table.kinds)) == ("tables", ["deltalake"])
    columns = table.metadata["dagster/column_schema"].schema.columns
    assert [(column.name, column.type) for column in columns] == [
        ("device", "string"),
        ("window_start", "timestamp"),
        ("window_end", "timestamp"),
        ("temperature", "double"),
        ("readings", "bigint"),
    ]


def test_a_column_is_traced_to_the_field_it_comes_from(make: Callable[..., Definitions]) -> None:
    table = make().resolve_asset_graph().get(AssetKey(["tables", "minute_latest"]))
    lineage = table.metadata["dagster/column_lineage"].lineage.deps_by_column
    found = {name: [(dep.asset_key.path, dep.column_name) for dep in deps] for name, deps in lineage.items()}
    assert found == {
        "device": [(["topics", "sensors"], "device")],
        "temperature": [(["topics", "sensors"], "temperature")],
    }
