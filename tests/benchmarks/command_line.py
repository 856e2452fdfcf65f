"""How long a user waits: `--help`, the first run, and the same run again with everything stored; Python's start too."""

import tempfile
import time
from pathlib import Path

from tests.commands import start_cold, textbench


def seconds(*arguments: str, home: Path, times: int = 1) -> float:
    """Return the wall-clock seconds of one command, the least of several times."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        command = start_cold(arguments, home)
        _, errors = command.communicate()
        assert command.returncode == 0, errors
        taken.append(time.perf_counter() - started)
    return min(taken)


def main() -> None:
    """Time the suite `quick` cold (new folder, no server), again, and the price of a first task."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        print(f"textbench --help                 {seconds('--help', home=home, times=3):6.2f} s")
        cold = seconds("run", "quick", home=home)
        again = seconds("run", "quick", home=home, times=3)
        print(f"run quick, cold                  {cold:6.1f} s")
        print(f"run quick, stored, server up     {again:6.1f} s   {cold / again:.0f} times faster")
        two = seconds("run", "-m", "binary", "-m", "tfidf", "--seed", "0", home=home, times=3)
        print(f"run two stored cells, server up  {two:6.2f} s")
        one = seconds("run", "-m", "binary", "--seed", "0", home=home, times=3)
        print(f"run one stored cell, server up   {one:6.1f} s   (an upper bound of call to first task)")
        textbench("down", home=home)
        started = seconds("run", "-m", "binary", "--seed", "0", home=home)
        print(f"run one stored cell, no server   {started:6.1f} s   (the same, with the server's start)")
        textbench("down", home=home)
