# For editors and type checkers. Python imports platform/penstock/__init__.py, which says why.
from penstock.platform.services.table_opening import open_table as open
