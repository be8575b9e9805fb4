"""User functions in a form that is no Python: `module:name`, if another file can import them."""

from penstock.engine.definition.user_functions import CombinerRef, FunctionRef, import_by_name
from penstock.engine.errors import DefinitionError
from penstock.engine.user_modules import CATALOG_PACKAGE

_VERSION_PREFIX = "version:"


def name_function(reference: FunctionRef | CombinerRef, section: str) -> str:
    """Return `module:name`. Raises DefinitionError for a function that only its own pipeline can name."""
    module = reference.name.partition(":")[0]
    fix = "Move it to a module of your own, and name it there as module:name; or keep the pipeline in Python"
    if module == "__main__" or module.startswith(CATALOG_PACKAGE):
        raise DefinitionError(
            section, f"{reference.name} is a Python function of the pipeline's own file", fix
        )
    try:
        import_by_name(reference.name, section)
    except DefinitionError:
        problem = f"{reference.name} is a Python function that no other file can import"
        raise DefinitionError(section, problem, fix) from None
    return reference.name


def read_version(reference: FunctionRef | CombinerRef) -> dict[str, str]:
    """Return the option `version` if the user set it."""
    if not reference.fingerprint.startswith(_VERSION_PREFIX):
        return {}
    return {"version": reference.fingerprint.removeprefix(_VERSION_PREFIX)}
