"""Checks that contracts, pipelines and suites can be loaded."""

from collections.abc import Iterator, Mapping

from penstock.ingestion.contracts import list_contract_names, load_catalog
from penstock.pipelines import catalog
from penstock.platform.doctor.finding import DoctorFinding
from penstock.platform.services.expectations import load_all_suites
from penstock.platform.services.stream_catalog import find_invalid_pipelines
from penstock.quality.expectations.suite import list_suites


def check_definitions() -> Iterator[DoctorFinding]:
    """Load each file as its users do. An invalid file blocks only what it defines."""
    yield _definition_finding("contracts", len(list_contract_names()), load_catalog().errors_by_topic)
    yield _definition_finding("pipelines", len(catalog.pipeline_names()), find_invalid_pipelines())
    yield _definition_finding("suites", len(list_suites()), load_all_suites().errors_by_subject)


def _definition_finding(kind: str, count: int, broken: Mapping[str, Exception]) -> DoctorFinding:
    if not broken:
        return DoctorFinding(kind, True, f"all {count} are valid")
    return DoctorFinding(kind, False, "; ".join(str(problem) for problem in broken.values()))
