"""Everything that the pipelines raise, drawn once.

PipelineError
├── DefinitionError     a pipeline says something that cannot be: found before Spark starts
├── PlanChangedError    a stream's state was made by another definition, which this one cannot go on from
├── PlanFormatError     a stored plan cannot be read back
├── StepsNotGivenError  the reference evaluator was not told what the steps before the window do
├── TranscriptError     a case file says something that cannot be run
│   └── NotInContractError  a case asks for what the contract does not have
├── JournalError        a stream's own files cannot be read, or contradict what is being done
├── FencedError         another host writes this stream now
├── DrainedError        a batch came while its stream was being stopped; it comes again
├── RememberingError    a function with a memory answered what it cannot
├── LateChangeError     a stage was told of a change whose window it had closed: a fault of ours
├── ArchiveError        a topic and its archive do not belong together, or the topic cannot be read
├── CheckFailedError    a record breaks a check that its input says to stop at
├── SumOverflowError    a sum has become greater than its column can hold
├── UserCodeError       a combiner of one's own raised an error
├── PoisonError         more records broke one's own code than may be set aside
├── LookupTableError    a table that a step looks into is not there, or not as it should be
├── PublishError        panes could not be published to a topic
├── RelayError          published panes are not as a stream that reads them takes them to be
├── ErasureError        a key cannot be erased as was asked
├── ReplayError         a stream cannot be replayed as was asked, or a replay was cut off half-way
├── StoredError         records that a bounded run is to read are not there, or not as they should be
├── StoreError          tables cannot lie where they are said to, or a folder is wanted there
├── StoreAwayError      an object store does not answer, or lets nobody in who comes with these keys
├── StreamEndedError    a stream's query is over, and nobody asked for that
└── HostError           the stream host itself cannot go on
"""

from penstock.core.errors import PenstockError


class PipelineError(PenstockError):
    """The root of what the pipelines raise; `except PipelineError` catches all of it and nothing else."""


class DefinitionError(PipelineError):
    """A definition that cannot be run: which field, what was found there, and what to write instead.

    `where` names the pipeline or file once it is known; the field is named from the user's point of view.
    """

    exit_code = 2

    def __init__(self, field: str, problem: object, fix: str, location: str = "") -> None:
        self.field = field
        self.problem = problem
        self.fix = fix
        self.location = location
        location_prefix = f"{location}: " if location else ""
        super().__init__(f"{location_prefix}{field}: {problem!s}. {fix}")

    def with_location(self, location: str) -> "DefinitionError":
        """Return the same complaint with the place where it was written."""
        return DefinitionError(self.field, self.problem, self.fix, location)


class PlanFormatError(PipelineError):
    """A stored plan that this version cannot read."""


class PlanChangedError(PipelineError):
    """A stream's state does not fit its definition: what changed, and what to do."""

    def __init__(self, stream: str, change: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {change}. {fix}.")


class TranscriptError(PipelineError):
    """A case file, or a case in it, that cannot be run as written."""

    exit_code = 2


class UnsupportedCaseError(TranscriptError):
    """A case that is well said, and asks for what the contract does not have: it differs, as one that ran might."""


class JournalError(PipelineError):
    """A file that a stream lives by is not as it should be: which, what is wrong, and what to do."""

    def __init__(self, path: object, problem: str, fix: str) -> None:
        super().__init__(f"{path}: {problem}. {fix}.")


class StatefulFunctionError(PipelineError):
    """A function with a memory answered what cannot be: which, and what for."""

    def __init__(self, function: str, problem: str) -> None:
        super().__init__(f"{function}: {problem}. Mend the function, and start the stream again.")


class LateRetractionError(PipelineError):
    """A later stage was told of changes after it had closed their windows, and its results would be wrong."""

    def __init__(self, stage: str, count: int, batch: int) -> None:
        super().__init__(
            f"batch {batch}: {stage} was told of {count} changes of windows that it had closed. Nothing was "
            "written. What it reads corrects windows for longer than it may, which is a fault of the engine: "
            "report it with the pipeline's explain. A longer lateness in this stage is a way round it."
        )


class WriterFencedError(PipelineError):
    """Another host has taken the stream over; this one must not write it any more."""

    def __init__(self, stream: str, epoch: int) -> None:
        super().__init__(
            f"Stream {stream}: another host took it over (this one had epoch {epoch}), so this one stops writing. "
            "Nothing is lost; see `penstock status` for who runs it now."
        )


class CheckFailedError(PipelineError):
    """A record breaks a check that stops its stream; its batch is not decided, and comes again."""

    def __init__(self, check: str, topic: str, count: int, first_violation: str) -> None:
        super().__init__(
            f"{count} records of {topic} fail the check {check!r}, which stops the stream: {first_violation}. "
            "Nothing of its batch is written. Mend what sends them, or let the check quarantine them, and the "
            "stream goes on with the same batch"
        )


class MissingStepsError(PipelineError):
    """The reference evaluator knows no DataFrame; a plan with steps needs them as a function over records."""

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"pipeline {plan}: it has steps over DataFrames, which the reference evaluator cannot run. "
            "Give them as steps=, a function from one record's fields to any number of them"
        )


class HostError(PipelineError):
    """The stream host cannot go on, whatever its streams do."""


class StreamEndedError(PipelineError):
    """A query ended by itself without saying why."""

    def __init__(self, stream: str | None) -> None:
        super().__init__(
            f"The query of stream {stream} ended by itself. It is started again; see the host's log."
        )


class StreamDrainingError(PipelineError):
    """A batch was not begun, because its stream is being stopped."""

    def __init__(self, stream: str, batch: int) -> None:
        super().__init__(
            f"Stream {stream} is being stopped: batch {batch} of Spark's is left for the next start."
        )


class ArchiveError(PipelineError):
    """A topic cannot be archived as things are: what was found where, and what to do about it."""


class UserCodeError(PipelineError):
    """A combiner of one's own raised an error: which function of it, and what it said."""

    def __init__(self, function: str, problem: BaseException) -> None:
        super().__init__(f"{function} raised {type(problem).__name__}: {problem}")


class SumOverflowError(PipelineError):
    """A sum that its column cannot hold; nothing of its batch is written."""

    def __init__(self, sum_name: str) -> None:
        super().__init__(
            f"{sum_name} of a window exceeds what its column can hold. Have a step make the field a wider "
            "type, such as DECIMAL(28, 0), or a check set such values aside; the batch then comes again."
        )


class PoisonLimitError(PipelineError):
    """More records broke one's own code than may be set aside."""

    def __init__(self, stream: str, batch: str, limit: int, reason: str) -> None:
        super().__init__(
            f"stream {stream}: user code failed on more than {limit} records, the last in {batch} ({reason}). "
            "Mend the code and start it again; PENSTOCK_HOST__POISON_LIMIT allows more."
        )


class ReplayError(PipelineError):
    """A replay that cannot be, or that has to be finished first: which stream, what was found, what to do."""

    def __init__(self, stream: str, problem: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {problem}. {fix}.")


class LookupTableError(PipelineError):
    """A table that a step looks into: which, what was found, what to do."""

    def __init__(self, table: str, problem: str, fix: str) -> None:
        super().__init__(f"{table}: {problem}. {fix}.")


class PublishError(PipelineError):
    """Panes that could not be published; their batch is decided, and they are sent when the stream starts again."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(
            f"topic {topic}: {problem}. The panes wait in a file, and are sent when the stream starts again. Make "
            "the topic, as with `penstock topics apply`, or see that its broker is there."
        )


class ChangelogLatenessError(PipelineError):
    """Published panes may be corrected for longer than their reader allows."""

    def __init__(self, topic: str, published_lateness_ms: int, allowed_lateness_ms: int) -> None:
        super().__init__(
            f"topic {topic}: its publisher corrects windows for {published_lateness_ms} ms, and read_panes allows "
            f"{allowed_lateness_ms} ms. Say lateness='{published_lateness_ms} ms' there, or more."
        )


class ErasureError(PipelineError):
    """A key that cannot be erased as was asked: of which stream, what was found, what to do."""

    def __init__(self, stream: str, problem: str, fix: str) -> None:
        super().__init__(f"stream {stream}: {problem}. {fix}.")


class StorageAddressError(PipelineError):
    """An address of an object store with which something cannot be done: which, why, what to do."""

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            f"{address}: {problem}. Set PENSTOCK_WAREHOUSE to s3://bucket/prefix, or to a folder that the host and "
            "Spark's workers see, such as a mounted store."
        )


class StorageUnavailableError(PipelineError):
    """An object store that does not do what it was asked: at which address, and what it said."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"{address}: the object store does not answer ({reason}). Keys are found as AWS's tools find them, as "
            "in AWS_PROFILE or AWS_ACCESS_KEY_ID; a region or an endpoint is set in [warehouse_store]; "
            "`penstock doctor` asks it again."
        )


class BoundedInputError(PipelineError):
    """Stored records that cannot be read: where, what was found, and what to do."""

    def __init__(self, source_path: str, problem: str, fix: str) -> None:
        super().__init__(f"{source_path}: {problem}. {fix}.")
