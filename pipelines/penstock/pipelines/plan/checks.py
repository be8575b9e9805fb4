"""Small checks that the plan's parts share: each says the field, what was found, and the fix."""

from penstock.pipelines.errors import DefinitionError


def require(condition: bool, field: str, found: object, fix: str) -> None:
    """Raise a `DefinitionError` unless the condition holds."""
    if not condition:
        raise DefinitionError(field, found, fix)


def positive(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number above zero."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value > 0, field, f"{value!r}", f"Give a whole number of {unit} above 0")


def not_negative(value: int, field: str, unit: str = "milliseconds") -> None:
    """Refuse what is not a whole number of at least zero."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= 0, field, f"{value!r}", f"Give a whole number of {unit}, 0 or more")


def one_of(value: str, allowed: tuple[str, ...], field: str) -> None:
    """Refuse a word that is not in the list, and name the list."""
    require(value in allowed, field, f"{value!r}", f"Write one of: {', '.join(allowed)}")


def named(value: str, field: str) -> None:
    """Refuse an empty name."""
    require(isinstance(value, str) and bool(value.strip()), field, f"{value!r}", "Give a name")
