"""Lineage and metadata of members of structs, named by their paths."""

from penstock.ingestion.contracts import parse_contract
from penstock.platform.definitions.tables.column_metadata import PERSONAL_TAGS, build_topic_schema
from penstock.platform.lineage.column_origins import trace_column_origins
from penstock.platform.lineage.result_columns import describe_result_columns
from penstock.stream import fixed, max_, read, sum_

ADDRESS = [
    {"name": "city", "type": "string", "doc": "City."},
    {"name": "moved_in", "type": "date", "doc": "Day.", "required": False, "personal": True},
]
CONTRACT = parse_contract(
    {
        "topic": "orders",
        "event_time": "at",
        "fields": [
            {"name": "at", "type": "timestamp", "format": "iso8601", "doc": "T."},
            {"name": "amount", "type": "decimal(12, 2)", "doc": "A."},
            {"name": "address", "type": "struct", "fields": ADDRESS, "doc": "Where."},
        ],
    }
)
PLAN = (
    read(CONTRACT)
    .key("address.city")
    .aggregate(revenue=sum_("amount"), newest=max_("address.moved_in"))
    .window(fixed("1 minute"))
    .write("by_city")
    .plan
)


def test_a_result_column_names_the_path_that_it_is_computed_from() -> None:
    origins = trace_column_origins(PLAN, PLAN.only_stage)
    assert {name: sorted(origin.source_fields) for name, origin in origins.items()} == {
        "address.city": [("orders", "address.city")],
        "revenue": [("orders", "amount")],
        "newest": [("orders", "address.moved_in")],
    }


def test_a_column_of_a_personal_struct_is_personal_and_types_are_exact() -> None:
    stage = PLAN.only_stage
    columns = describe_result_columns(PLAN, stage, stage.sinks[0], {("orders", "address")})
    assert [(column.name, column.type, column.is_personal) for column in columns[:3]] == [
        ("address.city", "string", True),
        ("revenue", "decimal(22,2)", False),
        ("newest", "date", True),
    ]


def test_the_schema_of_a_topic_lists_members_below_their_struct() -> None:
    columns = build_topic_schema(CONTRACT).columns
    assert [(column.name, column.type, column.tags == PERSONAL_TAGS) for column in columns] == [
        ("at", "timestamp(iso8601)", False),
        ("amount", "decimal(12, 2)", False),
        ("address", "struct<city: string, moved_in?: date>", True),
        ("address.city", "string", True),
        ("address.moved_in", "date", True),
    ]
