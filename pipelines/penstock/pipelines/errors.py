"""Everything that the pipelines raise, drawn once.

PipelineError
├── DefinitionError     a pipeline says something that cannot be: found before Spark starts
├── PlanFormatError     a stored plan cannot be read back
└── TranscriptError     a case file says something that cannot be run
"""


class PipelineError(Exception):
    """The root of what the pipelines raise; `except PipelineError` catches all of it and nothing else."""


class DefinitionError(PipelineError):
    """A definition that cannot be run: which field, what was found there, and what to write instead.

    `where` names the pipeline or file once it is known; the field is named from the user's point of view.
    """

    def __init__(self, field: str, found: object, fix: str, where: str = "") -> None:
        self.field = field
        self.found = found
        self.fix = fix
        self.where = where
        place = f"{where}: " if where else ""
        super().__init__(f"{place}{field}: {found!s}. {fix}")

    def located(self, where: str) -> "DefinitionError":
        """Return the same complaint with the place where it was written."""
        return DefinitionError(self.field, self.found, self.fix, where)


class PlanFormatError(PipelineError):
    """A stored plan that this version cannot read."""


class TranscriptError(PipelineError):
    """A case file, or a case in it, that cannot be run as written."""
