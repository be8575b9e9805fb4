"""Everything that the platform raises.

PlatformError
├── SettingsError      a setting has an invalid value: its name, its origin, and valid values
├── ControlError       the control store is unavailable, or its schema is newer than this code
├── StackError         the local stack cannot start or stop
│   ├── PortTakenError     another process uses a port of the stack
│   └── RequirementError   the machine lacks required software
├── NoExecutorError    a Spark cluster provides no executor for a command
├── UnknownStreamError no stream or pipeline has that name
├── UnknownTopicError  no topic has that name
├── UnknownColumnError no result of a pipeline has that name
├── UnknownOriginError the origin of stored records is invalid
├── RecordAddressError the address of a record is invalid, or the stream does not read its topic
├── RunNameError       the name of a run or replay is invalid, or already has results
├── BatchSizeError     a batch size is below one record
├── DemoError          a demonstration cannot run: no input, or its records did not arrive
├── UpgradeRefusedError an upgrade requires more than was accepted
├── HistoryRunningError a replay or upgrade of the stream is running
├── SampleError        a share or an interval is invalid
├── StreamRepairError  a stream cannot be repaired
├── RemovalError       something must not be removed, or could not be
├── UnknownQuarantinedRecordError no record with that address is in quarantine
└── TableNotFoundError no table has that name yet

Each message says what failed, with which value, where the value came from, and how to fix it.
"""

from penstock.core.errors import PenstockError


class PlatformError(PenstockError):
    """The root of the platform's errors; `exit_code` is the exit code of the command."""

    exit_code = 1


class SettingsError(PlatformError):
    """A setting has an invalid value."""

    exit_code = 2


class ControlError(PlatformError):
    """The control store is unavailable or incompatible."""


class StackError(PlatformError):
    """The local stack cannot start, stop or reach a state."""


class NoExecutorError(PlatformError):
    """A Spark cluster provides no executor."""


class PortTakenError(StackError):
    """Another process uses a port that the stack needs."""


class RequirementError(StackError):
    """The machine lacks software that the stack needs."""


class UnknownStreamError(PlatformError):
    """No stream or pipeline has that name."""

    exit_code = 2


class UnknownTopicError(PlatformError):
    """No topic has that name."""

    exit_code = 2


class UnknownColumnError(PlatformError):
    """No result of a pipeline has that name."""

    exit_code = 2


class UnknownOriginError(PlatformError):
    """The origin of stored records is invalid."""

    exit_code = 2


class TrialInputError(PlatformError):
    """There is no input for a trial of a pipeline."""

    exit_code = 2


class RecordAddressError(PlatformError):
    """The address of a record is invalid, or the stream does not read its topic."""

    exit_code = 2


class RunNameError(PlatformError):
    """The name of a run or replay is invalid, or already has results."""

    exit_code = 2


class BatchSizeError(PlatformError):
    """The batch size of a bounded run is invalid."""

    exit_code = 2


class DemoError(PlatformError):
    """A demonstration cannot run."""


class UpgradeRefusedError(PlatformError):
    """An upgrade requires more than was accepted; nothing has changed."""


class HistoryRunningError(PlatformError):
    """A replay or an upgrade of the stream is running already."""


class SampleError(PlatformError):
    """The share of keys or the interval of an audit is invalid."""

    exit_code = 2


class StreamRepairError(PlatformError):
    """A stream that cannot be repaired: what prevents it, and the other ways to resume."""


class RemovalError(PlatformError):
    """Something must not be removed now, or could not be removed completely."""


class UnknownQuarantinedRecordError(PlatformError):
    """No record with that address is in the quarantine of a topic."""

    exit_code = 2


class TableNotFoundError(PlatformError):
    """No table has that name, or not yet."""

    exit_code = 2


class TableQueryError(PlatformError):
    """A query of a table names a column that it does not have, or has a condition that cannot be read."""

    exit_code = 2
