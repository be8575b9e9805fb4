"""The engine of live streams behind cases: one Spark session, shared jobs, and a stream's whole life per script."""

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from penstock.pipelines.errors import PipelineError, TranscriptError
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.session import is_alive
from penstock.pipelines.transcripts.engine import Run, Script
from penstock.pipelines.transcripts.on_spark.driving import Driving
from penstock.pipelines.transcripts.on_spark.records import Place
from penstock.pipelines.transcripts.on_spark.sharing import Share, in_groups, shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARING = 200
"""Scripts that share a job at most: what a job says of them is held in memory until they have run."""
AHEAD = 3
"""Jobs that may be done before their scripts are folded."""

Group: TypeAlias = Sequence[int]
Shares: TypeAlias = Mapping[Place, Share]


class SparkEngine:
    """Runs scripts as live streams run: Spark's job, the fold, journal, state and Delta tables are the same.

    Scripts that ask Spark for the same share its jobs; each has a journal, a state and tables of its own, in a
    folder that goes when it has run. While one group's scripts are folded, Spark does the next group's job.
    """

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._types = FieldTypes(session)

    def run(self, scripts: Sequence[Script]) -> Iterable[Run]:
        """Yield for each script, in their order, what its tables say of each of its batches."""
        done: dict[int, Run] = {}
        following = 0
        with ThreadPoolExecutor(1, thread_name_prefix="transcripts") as pool:
            for group, job in self._jobs(pool, scripts):
                done |= self._runs([scripts[number] for number in group], group, job)
                while following in done:
                    yield done.pop(following)
                    following += 1

    def _jobs(
        self, pool: ThreadPoolExecutor, scripts: Sequence[Script]
    ) -> Iterator[tuple[Group, "Future[Shares]"]]:
        """Yield each group with its job, a few jobs ahead."""
        waiting: deque[tuple[Group, Future[Shares]]] = deque()
        for group in in_groups(scripts, SHARING):
            waiting.append((group, pool.submit(self._shares, [scripts[number] for number in group])))
            if len(waiting) > AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _shares(self, scripts: Sequence[Script]) -> Shares:
        return shares(self._session, self._stage(scripts[0]), scripts)

    def _stage(self, script: Script) -> ReadyStage:
        plan = script.plan
        return ready_stage(plan.stage, self._types.after(plan.sources, plan.stage))

    def _runs(self, scripts: Sequence[Script], group: Group, job: "Future[Shares]") -> dict[int, Run]:
        """Run the scripts of a group; where their job failed for one of them, each has a job of its own."""
        try:
            found = job.result()
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to these scripts alone
            if len(scripts) == 1 or isinstance(problem, PipelineError):
                return {number: self._told(problem) for number in group}
            return {n: self._alone(script) for n, script in zip(group, scripts, strict=True)}
        return {
            number: self._driven(script, of_script(found, place))
            for place, (number, script) in enumerate(zip(group, scripts, strict=True))
        }

    def _alone(self, script: Script) -> Run:
        """Run a script with a job of its own."""
        try:
            return self._driven(script, of_script(self._shares([script]), 0))
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this script alone
            return self._told(problem)

    def _driven(self, script: Script, readings: Mapping[int, Share]) -> Run:
        try:
            with tempfile.TemporaryDirectory(prefix="penstock-case-") as folder:
                return Driving(script, self._stage(script), Path(folder)).run(readings)
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this script alone
            return self._told(problem)

    def _told(self, problem: Exception) -> PipelineError:
        """Return a problem as a script's answer; without Spark there is no answer to any."""
        if isinstance(problem, PipelineError):
            return problem
        if not is_alive(self._session):
            raise problem
        first = (str(problem).strip() or "without a word").splitlines()[0]
        return TranscriptError(f"the engine failed at it: {type(problem).__name__}: {first}")


def of_script(found: Shares, script: int) -> dict[int, Share]:
    """Return the shares of one script, by batch."""
    return {place.batch: share for place, share in found.items() if place.script == script}
