"""Run experiments by name: `python -m tests.benchmarks.gaps NAME...`."""

import importlib
import sys

sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it may take minutes from line to line
for name in sys.argv[1:]:
    print(f"== {name}")
    importlib.import_module(f"tests.benchmarks.gaps.{name}").main()
