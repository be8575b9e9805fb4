"""What can go wrong in the platform, drawn once.

PlatformError
├── SettingsError      a setting is wrong: which one, where it came from, what would do
├── ControlError       the control store cannot be reached, or is newer than this code
├── StackError         the local stack cannot start or stop
│   ├── PortTakenError     somebody else listens where the stack would
│   └── RequirementError   something the machine needs is missing
├── NoExecutorError    a Spark cluster gives a command nothing to work with
├── UnknownStreamError no pipeline of that name
├── UnknownTopicError  no topic of that name at the broker
├── UnknownOriginError records are to be read from what is no place
├── RunNameError       a run or a replay is to be called what no folder may be, or what has results already
├── BatchSizeError     a history is to be cut into batches of no record
├── DemoError          a pipeline cannot be shown: it has no input, or its records did not arrive
├── UpgradeRefusedError an upgrade takes more than was accepted
├── SampleError        a share or a stretch of time that is none
└── TableNotFoundError no table of that name, or not yet

Each message says what was tried, with which value, where it came from, and what to do next.
"""

from penstock.core.errors import PenstockError


class PlatformError(PenstockError):
    """Anything the platform tells a person in one sentence; `exit_code` is what the command ends with."""

    exit_code = 1


class SettingsError(PlatformError):
    """A setting has a value that cannot be used."""

    exit_code = 2


class ControlError(PlatformError):
    """The control store cannot do what was asked."""


class StackError(PlatformError):
    """The local stack is not as it should be."""


class NoExecutorError(PlatformError):
    """A Spark cluster gives a command no executor."""


class PortTakenError(StackError):
    """A port that the stack needs is in use."""


class RequirementError(StackError):
    """The machine lacks something the stack stands on."""


class UnknownStreamError(PlatformError):
    """No pipeline in the catalog has that name."""

    exit_code = 2


class UnknownTopicError(PlatformError):
    """The broker has no topic of that name."""


class UnknownOriginError(PlatformError):
    """What is named is no place of stored records."""

    exit_code = 2


class RunNameError(PlatformError):
    """A run or a replay cannot have the name that it is given."""

    exit_code = 2


class BatchSizeError(PlatformError):
    """Batches of a bounded run cannot be of so many records."""

    exit_code = 2


class DemoError(PlatformError):
    """A demonstration cannot be given."""


class UpgradeRefusedError(PlatformError):
    """An upgrade takes more than was accepted; nothing was done."""


class SampleError(PlatformError):
    """What is asked for is no share of keys, or no stretch of time."""

    exit_code = 2


class TableNotFoundError(PlatformError):
    """There is no such table, or not yet."""
