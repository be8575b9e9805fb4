"""Runs cases as live streams: one Spark session, shared jobs, and a complete stream per script."""

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from penstock.conformance.engines import Script, ScriptResult
from penstock.conformance.on_spark.script_run import ScriptRun
from penstock.conformance.on_spark.shared_job import SharedJobReading, group_scripts, run_shared_jobs
from penstock.conformance.on_spark.shared_topic import ScriptBatch
from penstock.engine.errors import PipelineError, TranscriptError
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.spark.session import is_session_alive
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_SCRIPTS_PER_JOB = 200
"""The maximum number of scripts per job. A job's output stays in memory until its scripts have run."""
MAX_JOBS_AHEAD = 3
"""The maximum number of finished jobs whose scripts have not run yet."""

ScriptGroup: TypeAlias = Sequence[int]
ReadingsByBatch: TypeAlias = Mapping[ScriptBatch, SharedJobReading]


class SparkEngine:
    """Runs scripts as live streams run: the same Spark job, operators, journal, state and Delta tables.

    Scripts that need the same Spark job share it. Each has its own journal, state and tables, in a folder that is
    deleted afterwards. While one group's batches run, Spark runs the job of the next group.
    """

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._types = FieldTypeResolver(session)

    def run(self, scripts: Sequence[Script]) -> Iterable[ScriptResult]:
        """Yield the output of each batch of each script, in order, as read from the tables."""
        results: dict[int, ScriptResult] = {}
        next_index = 0
        with ThreadPoolExecutor(1, thread_name_prefix="transcripts") as pool:
            for group, job in self._submit_jobs(pool, scripts):
                results |= self._run_group([scripts[number] for number in group], group, job)
                while next_index in results:
                    yield results.pop(next_index)
                    next_index += 1

    def _submit_jobs(
        self, pool: ThreadPoolExecutor, scripts: Sequence[Script]
    ) -> Iterator[tuple[ScriptGroup, "Future[ReadingsByBatch]"]]:
        """Yield each group with its job, a few jobs ahead."""
        submitted: deque[tuple[ScriptGroup, Future[ReadingsByBatch]]] = deque()
        for group in group_scripts(scripts, MAX_SCRIPTS_PER_JOB):
            submitted.append(
                (group, pool.submit(self._run_shared_job, [scripts[number] for number in group]))
            )
            if len(submitted) > MAX_JOBS_AHEAD:
                yield submitted.popleft()
        yield from submitted

    def _run_shared_job(self, scripts: Sequence[Script]) -> ReadingsByBatch:
        return run_shared_jobs(self._session, self._prepare_stage(scripts[0]), scripts)

    def _prepare_stage(self, script: Script) -> CompiledStage:
        plan = script.plan
        return compile_stage(plan.only_stage, self._types.resolve_stage(plan.sources, plan.only_stage))

    def _run_group(
        self, scripts: Sequence[Script], group: ScriptGroup, job: "Future[ReadingsByBatch]"
    ) -> dict[int, ScriptResult]:
        """Run the scripts of a group; if the shared job fails, each script gets a job of its own."""
        try:
            readings = job.result()
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to these scripts alone
            if len(scripts) == 1 or isinstance(problem, PipelineError):
                return {number: self._to_script_error(problem) for number in group}
            return {n: self._run_alone(script) for n, script in zip(group, scripts, strict=True)}
        return {
            number: self._run_script(script, readings_of_script(readings, position))
            for position, (number, script) in enumerate(zip(group, scripts, strict=True))
        }

    def _run_alone(self, script: Script) -> ScriptResult:
        """Run a script with a job of its own."""
        try:
            return self._run_script(script, readings_of_script(self._run_shared_job([script]), 0))
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this script alone
            return self._to_script_error(problem)

    def _run_script(self, script: Script, readings: Mapping[int, SharedJobReading]) -> ScriptResult:
        try:
            with tempfile.TemporaryDirectory(prefix="penstock-case-") as folder:
                return ScriptRun(script, self._prepare_stage(script), Path(folder)).run(readings)
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is the answer to this script alone
            return self._to_script_error(problem)

    def _to_script_error(self, problem: Exception) -> PipelineError:
        """Return an error as the result of a script; raise it if Spark is gone."""
        if isinstance(problem, PipelineError):
            return problem
        if not is_session_alive(self._session):
            raise problem
        first_line = (str(problem).strip() or "no message").splitlines()[0]
        return TranscriptError(f"the engine failed: {type(problem).__name__}: {first_line}")


def readings_of_script(readings: ReadingsByBatch, script_index: int) -> dict[int, SharedJobReading]:
    """Return the shares of one script, by batch."""
    return {
        script_batch.batch_id: reading
        for script_batch, reading in readings.items()
        if script_batch.script_index == script_index
    }
