"""Run every benchmark of this folder, or those named: `python -m tests.benchmarks [NAME]...`."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it may take minutes from line to line
names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
for name in names:
    print(f"== {name}")
    importlib.import_module(f"tests.benchmarks.{name}").main()
