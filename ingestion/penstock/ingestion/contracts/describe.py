"""Renders the catalog as Markdown; `python -m penstock.ingestion.contracts.describe` regenerates the page."""

from collections.abc import Iterable, Iterator

from penstock.ingestion.contracts.catalog import CATALOG_FOLDER, load_contracts
from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.future_skew import FutureSkewLimit

CATALOG_PAGE = CATALOG_FOLDER / "README.md"
_PAGE_HEADER = """# Topics
One YAML file for each topic. `python -m penstock.ingestion.contracts.describe` generates this page.
"""


def describe_contract(contract: Contract) -> str:
    """Return the section of one contract, as Markdown."""
    roles = [
        f"{name}: `{value}`"
        for name, value in (("key", contract.key), ("event time", contract.event_time), ("id", contract.id))
        if value is not None
    ]
    facts = [
        *roles,
        f"max out-of-orderness: {contract.max_out_of_orderness_ms / 1000:g} s",
        *(
            [f"max future skew: {_format_skew(contract.max_future_skew)}"]
            if contract.max_future_skew is not None
            else []
        ),
        f"{contract.encoding}, {contract.compatibility}",
        *([f"owner: {contract.owner}"] if contract.owner else []),
    ]
    rows = "\n".join(row for item in contract.fields for row in _format_field_rows(item))
    table_header = "| field | type | required | meaning |\n|---|---|---|---|"
    return f"## {contract.topic}\n{contract.doc} {'; '.join(facts)}.\n\n{table_header}\n{rows}\n"


def _format_skew(limit: FutureSkewLimit) -> str:
    return limit if isinstance(limit, str) else f"{limit / 1000:g} s"


def render_page(catalog: Iterable[Contract]) -> str:
    """Return the page of a whole catalog."""
    return "\n".join([_PAGE_HEADER, *map(describe_contract, catalog)])


def _format_field_rows(item: ContractField, parent: str = "") -> Iterator[str]:
    """Yield the row of a field, and those of its members."""
    name = f"{parent}{item.name}"
    meaning = f"{item.doc} *Personal.*" if item.personal else item.doc
    type_text = item.parsed_type.keyword if item.members else item.type
    yield f"| `{name}` | {type_text} | {'yes' if item.required else 'no'} | {meaning} |"
    for member in item.members:
        yield from _format_field_rows(member, f"{name}.")


if __name__ == "__main__":
    CATALOG_PAGE.write_text(render_page(load_contracts()), encoding="utf-8")
