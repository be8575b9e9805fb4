"""Checksums of files that are written whole: the last line of a file holds that of the content before it.

The line has a fixed length, and is JSON, so that tools for JSON lines can read a file of JSON with it. Files
without this line, as release 0.1.0 wrote them, are read as they are.
"""

import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.errors import DamagedFileError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CHECKSUM_LINE = re.compile(rb'\n\{"crc32":"([0-9a-f]{8})"\}\n')
CHECKSUM_LINE_BYTES = len(b'\n{"crc32":"00000000"}\n')


def format_checksum_line(content: "Buffer") -> bytes:
    """Return the line to append to this content."""
    return b'\n{"crc32":"%08x"}\n' % zlib.crc32(content)


def verify_checksum(path: Path, data: "Buffer") -> memoryview:
    """Return the content of a file without its checksum line. Raises DamagedFileError if they do not match."""
    view = memoryview(data)
    if not len(view):
        raise DamagedFileError(path, "it is empty, as after a power cut")
    line = _CHECKSUM_LINE.fullmatch(view[-CHECKSUM_LINE_BYTES:])
    if line is None:
        return view
    content = view[:-CHECKSUM_LINE_BYTES]
    if zlib.crc32(content) != int(line[1], 16):
        raise DamagedFileError(path, "its checksum is wrong")
    return content
