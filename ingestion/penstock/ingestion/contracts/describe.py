"""The catalog as a page for people: `python -m penstock.ingestion.contracts.describe` writes it again."""

from collections.abc import Iterable

from penstock.ingestion.contracts.catalog import CATALOG, contracts
from penstock.ingestion.contracts.model import Contract, Field

PAGE = CATALOG / "README.md"
_HEAD = """# Topics
One YAML file a topic; this page is made from them by `python -m penstock.ingestion.contracts.describe`.
"""


def describe(contract: Contract) -> str:
    """Return what a contract says, as Markdown."""
    roles = [
        f"{name}: `{value}`"
        for name, value in (("key", contract.key), ("event time", contract.event_time), ("id", contract.id))
        if value is not None
    ]
    facts = [
        *roles,
        f"bound: {contract.bound_ms / 1000:g} s",
        f"{contract.encoding}, {contract.compatibility}",
        *([f"owner: {contract.owner}"] if contract.owner else []),
    ]
    rows = "\n".join(map(_row, contract.fields))
    head = "| field | type | required | meaning |\n|---|---|---|---|"
    return f"## {contract.topic}\n{contract.doc} {'; '.join(facts)}.\n\n{head}\n{rows}\n"


def page(catalog: Iterable[Contract]) -> str:
    """Return the page of a whole catalog."""
    return "\n".join([_HEAD, *map(describe, catalog)])


def _row(item: Field) -> str:
    said = f"{item.doc} *Personal.*" if item.personal else item.doc
    return f"| `{item.name}` | {item.type} | {'yes' if item.required else 'no'} | {said} |"


if __name__ == "__main__":
    PAGE.write_text(page(contracts()), encoding="utf-8")
