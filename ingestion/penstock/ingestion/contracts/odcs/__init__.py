"""Contracts as documents of the Open Data Contract Standard (ODCS) by Bitol, version 3: export and import.

Types translate themselves, with `odcs_type` and `from_odcs_type` of `FieldType`.
"""

from penstock.ingestion.contracts.odcs.odcs_differences import ImportNote
from penstock.ingestion.contracts.odcs.odcs_export import export_odcs
from penstock.ingestion.contracts.odcs.odcs_import import OdcsImport, import_odcs

__all__ = ["ImportNote", "OdcsImport", "export_odcs", "import_odcs"]
