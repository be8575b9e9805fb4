"""Which files of one's own can be used: contracts, pipelines, suites."""

from collections.abc import Iterator, Mapping

from penstock.ingestion.contracts import contract_names, declared
from penstock.pipelines import catalog
from penstock.platform.doctor.finding import Finding
from penstock.platform.expectations import all_suites
from penstock.platform.streams import problem_of
from penstock.quality.expectations.suite import suite_names


def usable() -> Iterator[Finding]:
    """Look into each file as those do that need it: one that cannot be used holds up these alone."""
    yield _finding("contracts", len(contract_names()), declared().broken)
    found = {name: problem_of(name) for name in catalog.names()}
    broken = {name: problem for name, problem in found.items() if problem is not None}
    yield _finding("pipelines", len(found), broken)
    yield _finding("suites", len(suite_names()), all_suites().broken)


def _finding(what: str, count: int, broken: Mapping[str, Exception]) -> Finding:
    if not broken:
        return Finding(what, True, f"{count} can be used")
    return Finding(what, False, "; ".join(str(problem) for problem in broken.values()))
