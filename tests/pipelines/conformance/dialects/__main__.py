"""Translates cases: `python -m tests.pipelines.conformance.dialects FILE… > cases.jsonl` prints a case per line."""

import json
import sys
from pathlib import Path

from tests.pipelines.conformance.dialects.translation import load_translated_cases

if __name__ == "__main__":
    for case in load_translated_cases(map(Path, sys.argv[1:])):
        print(json.dumps(case))
