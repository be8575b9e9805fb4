"""The errors of the engine.

PipelineError
├── DefinitionError        a pipeline's definition is invalid; found before Spark starts
│   ├── UnknownNameError       a definition uses a name that does not exist
│   └── CombinedDefinitionError  several problems of one definition
├── PlanChangedError       a stream's state does not fit its changed definition
├── PlanFormatError        a stored plan cannot be read
├── MissingStepsError      the reference evaluator does not know the steps before the window
├── TranscriptError        a case file is invalid
│   └── UnsupportedCaseError  a case needs what the engine does not have
├── JournalError           a stream's files cannot be read, or contradict a request
│   ├── DamagedEntryError    a file of the journal or of the state is torn, or its checksum is wrong
│   └── TableAheadError      a table has batches that the journal does not know
├── WriterFencedError      another host writes this stream now
├── StreamDrainingError    a batch arrived while its stream was stopping; the next start repeats it
├── StatefulFunctionError  a stateful function returned an invalid result
├── LateRetractionError    a stage received a change of a window that it had closed: a fault of the engine
├── ArchiveError           a topic and its archive do not match, or the topic cannot be read
├── CheckFailedError       a record violates a check that stops the stream
├── SumOverflowError       a sum exceeds its column
├── UserCodeError          user code raised an error
├── PoisonLimitError       more records broke user code than may be quarantined
├── LookupTableError       a lookup's table does not exist, or is not as expected
├── TableOwnedError        a table or topic belongs to another writer
├── PublishError           panes could not be published to a topic
├── ChangelogLatenessError  published panes do not fit the stream that reads them
├── OtherTopicError        a topic was created again, or is in another cluster
├── RecordsExpiredError    a topic lost records before a stream read them
├── TopicUnavailableError  the topics of a stream cannot be looked up
├── ErasureError           a key cannot be erased
├── ReplayError            a stream cannot be replayed, or a replay was interrupted
├── BoundedInputError      the stored records of a bounded run do not exist, or are not as expected
├── StorageAddressError    tables cannot be stored at an address, or a folder is required
├── StorageUnavailableError  an object store does not answer, or refuses the credentials
├── StreamEndedError       a stream's query ended without a request
└── HostError              the stream host cannot continue
"""

from collections.abc import Sequence

from typing_extensions import override

from penstock.core.errors import PenstockError


class PipelineError(PenstockError):
    """The root of the engine's errors; `except PipelineError` catches all of them."""


class DefinitionError(PipelineError):
    """An invalid definition: the field, the problem, and the fix.

    `location` names the pipeline or file once it is known, with the line if that is known: `orders.yaml:12`. The
    field is named as the user wrote it.
    """

    exit_code = 2

    def __init__(self, field: str, problem: object, fix: str, location: str = "") -> None:
        super().__init__(field, problem, fix, location)
        self.field = field
        self.problem = problem
        self.fix = fix
        self.location = location

    @override
    def __str__(self) -> str:
        location_prefix = f"{self.location}: " if self.location else ""
        problem_text = str(self.problem)
        end = "" if problem_text.endswith(("?", ".")) else "."
        return f"{location_prefix}{self.field}: {problem_text}{end} {self.fix}".rstrip()

    @property
    def problems(self) -> "tuple[DefinitionError, ...]":
        """Each problem of the definition."""
        return (self,)

    def with_location(self, location: str) -> "DefinitionError":
        """Return the same error with the place where the definition is."""
        return DefinitionError(self.field, self.problem, self.fix, location)


class UnknownNameError(DefinitionError):
    """A definition uses a name that does not exist. `name` is what the user wrote."""

    def __init__(self, field: str, problem: object, fix: str, location: str = "", name: str = "") -> None:
        super().__init__(field, problem, fix, location)
        self.args = (field, problem, fix, location, name)
        self.name = name

    @override
    def with_location(self, location: str) -> "UnknownNameError":
        """Return the same error with the place where the definition is."""
        return UnknownNameError(self.field, self.problem, self.fix, location, self.name)


class CombinedDefinitionError(DefinitionError):
    """Several problems of one definition, each on a line. Field, problem and fix are those of the first one."""

    def __init__(self, problems: Sequence[DefinitionError]) -> None:
        first = problems[0]
        super().__init__(first.field, first.problem, first.fix, first.location)
        self.args = (tuple(problems),)
        self._problems = tuple(problems)

    @override
    def __str__(self) -> str:
        return "\n".join(map(str, self._problems))

    @property
    @override
    def problems(self) -> tuple[DefinitionError, ...]:
        """Each problem of the definition."""
        return self._problems

    @override
    def with_location(self, location: str) -> "CombinedDefinitionError":
        """Return the same errors. Those without a location get this one."""
        return CombinedDefinitionError(
            [problem if problem.location else problem.with_location(location) for problem in self._problems]
        )


class PlanFormatError(PipelineError):
    """A stored plan that this version cannot read."""


class PlanChangedError(PipelineError):
    """A stream's state does not fit its definition: what changed, and how to fix it."""

    def __init__(self, stream: str, change: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {change}. {fix}.")


class TranscriptError(PipelineError):
    """A case file, or a case in it, that is invalid."""

    exit_code = 2


class PipelineTestError(PipelineError):
    """A test of a pipeline gives something that cannot be used."""

    exit_code = 2


class UnsupportedCaseError(TranscriptError):
    """A valid case that needs what the engine does not have; it counts as a difference."""


class JournalError(PipelineError):
    """A file of a stream is not as expected: which one, the problem, and the fix."""

    def __init__(self, path: object, problem: str, fix: str) -> None:
        super().__init__(f"{path}: {problem}. {fix}.")


class DamagedEntryError(JournalError):
    """A file of the journal or of the state that is torn, or whose checksum is wrong."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(
            path,
            problem,
            "`penstock stream repair NAME`, with the name of the stream, shows how it can resume",
        )
        self.problem = f"{path} {problem}"


class TableAheadError(JournalError):
    """A table has batches that the journal of its stream does not know, as after a lost or restored journal."""

    def __init__(self, stream: str, table: str, table_batch: int, journal_batch: int) -> None:
        known = (
            f"the journal of {stream} ends with batch {journal_batch}"
            if journal_batch >= 0
            else (f"the journal of {stream} has no batch")
        )
        super().__init__(
            table,
            f"has batch {table_batch}, and {known}. Records would be counted twice or lost, so the stream stops",
            f"`penstock stream repair {stream}` shows how it can resume",
        )


class StatefulFunctionError(PipelineError):
    """A stateful function returned an invalid result."""

    def __init__(self, function: str, problem: str) -> None:
        super().__init__(f"{function}: {problem}. Fix the function, and start the stream again.")


class LateRetractionError(PipelineError):
    """A later stage received changes of windows that it had closed, so its results would be wrong."""

    def __init__(self, stage: str, count: int, batch: int) -> None:
        super().__init__(
            f"batch {batch}: {stage} received {count} changes of windows that it had closed. Nothing was "
            "written. Its input corrects windows for longer than it may, which is a fault of the engine: "
            "report it with the output of `penstock explain`. As a workaround, increase the lateness of this stage."
        )


class WriterFencedError(PipelineError):
    """Another host has taken over the stream; this one must not write it."""

    def __init__(self, stream: str, epoch: int) -> None:
        super().__init__(
            f"Stream {stream}: another host took it over, so this host (epoch {epoch}) stops writing. "
            "Nothing is lost; `penstock status` shows which host runs it."
        )


class CheckFailedError(PipelineError):
    """A record violates a check that stops its stream; its batch is not committed, and is repeated."""

    def __init__(self, check: str, topic: str, count: int, first_violation: str) -> None:
        super().__init__(
            f"{count} records of {topic} fail the check {check!r}, which stops the stream: {first_violation}. "
            "Nothing of its batch is written. Fix the producer, or let the check quarantine such records; the "
            "stream then resumes with the same batch"
        )


class MissingStepsError(PipelineError):
    """The reference evaluator cannot run DataFrames; a plan with steps needs them as a function over records."""

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"pipeline {plan}: it has steps over DataFrames, which the reference evaluator cannot run. "
            "Pass them as steps=, a function from one record's fields to any number of them"
        )


class OtherTopicError(PipelineError):
    """A stream's topic is not the one that it read: it was created again, or it is in another cluster."""

    def __init__(self, stream: str, topic: str, stored_id: str, current_id: str) -> None:
        super().__init__(
            f"stream {stream}: {topic} is another topic now (id {stored_id} before, {current_id} now): it was "
            "created again, or it is in another cluster. Its offsets mean other records. Return to the former "
            "cluster. Or drop the stream with its tables and start it again: "
            f"`penstock stream drop {stream}`"
        )


class RecordsExpiredError(PipelineError):
    """A topic no longer has records that a stream did not read yet. Going on would lose them in silence."""

    def __init__(self, stream: str, records: str) -> None:
        super().__init__(
            f"stream {stream}: {records} expired in the topic, or were deleted, before the stream read them. If "
            f"the topic has an archive, `penstock stream replay {stream} --from archive` reads them from there. "
            f"`penstock stream replay {stream} --drop-earlier` starts over with the records that are left. "
            "Set a longer `retention` in the contract, so that records outlive the downtime of their readers"
        )


class TopicUnavailableError(PipelineError):
    """The topics of a stream cannot be looked up, or one of them does not exist yet."""

    def __init__(self, stream: str, topics: Sequence[str], reason: str, *, is_missing: bool = False) -> None:
        names = ", ".join(topics)
        subject = f"topic {names}" if len(topics) == 1 else f"one of the topics {names}"
        super().__init__(
            f"stream {stream}: {subject} does not exist. Create it with `penstock topics apply`; the stream then "
            "starts by itself"
            if is_missing
            else f"stream {stream}: {names} cannot be looked up: {reason}. Check that the broker is up"
        )


class HostError(PipelineError):
    """The stream host cannot continue, whatever the state of its streams."""


class StreamEndedError(PipelineError):
    """A query ended by itself without an error."""

    def __init__(self, stream: str | None) -> None:
        super().__init__(
            f"The query of stream {stream} ended by itself. The host starts it again; see its log."
        )


class StreamDrainingError(PipelineError):
    """A batch was not started, because its stream is stopping."""

    def __init__(self, stream: str, batch: int) -> None:
        super().__init__(f"Stream {stream} is stopping: the next start runs Spark batch {batch}.")


class ArchiveError(PipelineError):
    """A topic cannot be archived: the problem, where it is, and the fix."""


class UserCodeError(PipelineError):
    """User code raised an error: which function, at which file and line if known, and the message."""

    def __init__(self, function: str, problem: BaseException, location: str = "") -> None:
        place = f" ({location})" if location else ""
        super().__init__(f"{function}{place}: {type(problem).__name__}: {problem}")


class SumOverflowError(PipelineError):
    """A sum that its column cannot hold; nothing of its batch is written."""

    def __init__(self, sum_name: str) -> None:
        super().__init__(
            f"{sum_name} of a window exceeds what its column can hold. Cast the field to a wider type in a "
            "step, such as DECIMAL(28, 0), or quarantine such values with a check; the batch is then repeated."
        )


class PoisonLimitError(PipelineError):
    """More records broke user code than may be quarantined."""

    def __init__(self, reason: str, record: str, limit: int) -> None:
        records = "1 record" if limit == 1 else f"{limit} records"
        super().__init__(
            f"{reason}, at {record}. User code fails on more than {records}. "
            "Fix the code; PENSTOCK_HOST__POISON_LIMIT allows more such records"
        )


class ReplayError(PipelineError):
    """A replay that is not possible, or that must be finished first: the stream, the problem, and the fix."""

    def __init__(self, stream: str, problem: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {problem}. {fix}.")


class LookupTableError(PipelineError):
    """A lookup's table: which one, the problem, and the fix."""

    def __init__(self, table: str, problem: str, fix: str) -> None:
        super().__init__(f"{table}: {problem}. {fix}.")


class TableOwnedError(PipelineError):
    """A table or topic that belongs to another writer; nothing was written to it."""

    def __init__(self, table: str, owner: str, writer: str, stream: str) -> None:
        self.table = table
        short_name = "/".join(table.rsplit("/", 2)[-2:])
        super().__init__(
            f"{table} belongs to {owner}; {writer} must not write it. Choose another name in write(...), or hand "
            f"it over on purpose: `penstock table claim {short_name} --stream {stream}`."
        )


class PublishError(PipelineError):
    """Panes that could not be published. Their batch is committed; the next start of the stream sends them."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"topic {topic}: {problem}. The panes are in a file, and the next start of the stream sends them. "
            "Create the topic, for example with `penstock topics apply`, or check that its broker runs."
        )


class ChangelogLatenessError(PipelineError):
    """Published panes may be corrected for longer than their reader allows."""

    def __init__(self, topic: str, published_lateness_ms: int, allowed_lateness_ms: int) -> None:
        super().__init__(
            f"topic {topic}: its publisher corrects windows for {published_lateness_ms} ms, and read_panes allows "
            f"{allowed_lateness_ms} ms. Set lateness='{published_lateness_ms} ms' there, or more."
        )


class ErasureError(PipelineError):
    """A key that cannot be erased: the stream, the problem, and the fix."""

    def __init__(self, stream: str, problem: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {problem}. {fix}.")


class StorageAddressError(PipelineError):
    """An address that cannot be used for this: the address, the problem, and the fix."""

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            f"{address}: {problem}. Set PENSTOCK_WAREHOUSE to s3://bucket/prefix, or to a folder that the host and "
            "Spark's workers share, such as a mounted store."
        )


class StorageUnavailableError(PipelineError):
    """An object store that does not answer: the address, and its message."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"{address}: the object store does not answer ({reason}). Credentials are found as AWS tools do, "
            "for example by AWS_PROFILE or AWS_ACCESS_KEY_ID; set a region or an endpoint in [warehouse_store]; "
            "`penstock doctor` tests the connection."
        )


class BoundedInputError(PipelineError):
    """Stored records that cannot be read: where, the problem, and the fix."""

    def __init__(self, source_path: str, problem: str, fix: str) -> None:
        super().__init__(f"{source_path}: {problem}. {fix}.")
