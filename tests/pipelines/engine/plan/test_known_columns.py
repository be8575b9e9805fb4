"""A misspelt column or member of a struct is refused with the nearest path."""

import pytest

from penstock.engine.errors import UnknownNameError
from penstock.engine.plan.known_columns import require_known_column

COLUMNS = {
    "id": "STRING",
    "amount": None,
    "address": "STRUCT<`city`: STRING, `place`: STRUCT<`lat`: DOUBLE, `lon`: DOUBLE>>",
    "tags": "MAP<STRING, STRUCT<`a`: INT>>",
}
ALL_PATHS = (
    f"Known fields: {', '.join(COLUMNS)}, address.city, address.place, address.place.lat, address.place.lon"
)


@pytest.mark.parametrize("name", [*COLUMNS, "address.city", "address.place.lat"])
def test_a_column_is_accepted(name: str) -> None:
    paths = dict.fromkeys(["address.city", "address.place.lat"], "STRING")
    require_known_column(name, COLUMNS | paths, "key", "", "Known fields")


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        (
            "address.citty",
            "Did you mean 'address.city'? Fields of address: address.city, address.place",
        ),
        (
            "address.place.lati",
            "Did you mean 'address.place.lat'? Fields of address.place: address.place.lat, address.place.lon",
        ),
        ("address.street", "Fields of address: address.city, address.place"),
        (
            "adress.city",
            f"Did you mean 'address.city'? {ALL_PATHS}",
        ),
        (
            "city",
            f"Did you mean 'address.city'? {ALL_PATHS}",
        ),
        ("ammount", "Did you mean 'amount'? Known fields: id, amount, address, tags"),
        ("nonsense", "Known fields: id, amount, address, tags"),
    ],
)
def test_an_unknown_name_leads_to_the_nearest_path(name: str, fix: str) -> None:
    """`address.citty` led to `address`, which is no key."""
    problem = f"shop has no field {name!r}"
    with pytest.raises(UnknownNameError) as raised:
        require_known_column(name, COLUMNS, "key", problem, "Known fields")
    assert str(raised.value) == f"key: {problem}. {fix}"
