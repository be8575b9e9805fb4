"""The root of every error that Penstock raises on purpose.

PenstockError
├── DurationError     a text is not a duration
├── ReferenceImportError  a module:name cannot be imported
├── UnknownKindError  a name or module:name is no kind of window, source, ...
├── WaitTimeoutError  a condition did not become true before its deadline
├── DamagedFileError  a file of Penstock is torn, or its checksum is wrong
├── SecretError       a secret cannot be read, or would be printed
├── HttpServerError   an HTTP server cannot start
└── ServerAccessError a server would be open to callers that it should refuse

The other packages draw their own trees in their `errors.py`; each of them starts here.
"""

from typing import ClassVar


class PenstockError(Exception):
    """The text says what is wrong, where, and how to fix it; `exit_code` is what a command ends with.

    0 means done, 1 that something is not as it should be, 2 wrong usage or configuration.
    """

    exit_code: ClassVar[int] = 1


class DurationError(PenstockError):
    """A text that is not a duration: what is wrong with it, and what to write instead."""

    exit_code = 2

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}. {fix}.")
        self.problem = problem
        self.fix = fix


class ReferenceImportError(PenstockError):
    """A `module:name` that cannot be imported; the text is that of the import's own error."""

    exit_code = 2


class UnknownKindError(PenstockError):
    """A name that is no kind of window, source and so on, or a `module:name` that cannot be loaded."""

    exit_code = 2


class WaitTimeoutError(PenstockError):
    """A condition that did not become true before its deadline."""


class DamagedFileError(PenstockError):
    """A file that Penstock wrote and that is no longer whole: which one, and how that shows."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(f"{path}: {problem}.")
        self.args = (path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}."


class SecretError(PenstockError):
    """A secret that cannot be read. Its value is in no message."""


class HttpServerError(PenstockError):
    """An HTTP server cannot start: its address or its certificate cannot be used."""


class ServerAccessError(PenstockError):
    """A server would be open to callers that it should refuse: a token is missing, or can be guessed."""

    exit_code = 2
