"""Computations that the tests of the store and of isolation run, importable by name in a child process."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from textbench.tasks.storage.recipe import Reference
from textbench.tasks.storage.store import Job


def numbers(params: dict[str, Any], stage: str = "numbers") -> Reference:
    """Refer to what `make_numbers` makes."""
    return Reference(stage, "tests.plumbing:make_numbers", params)


def total(params: dict[str, Any], upstream: Reference) -> Reference:
    """Refer to what `make_total` makes of upstream numbers."""
    return Reference("total", "tests.plumbing:make_total", params, {"numbers": upstream})


def make_numbers(job: Job) -> None:
    """Write 0..n-1 as an array and n as JSON, after noting in the file `count` that it was computed."""
    _note(job)
    time.sleep(job.params.get("seconds", 0))
    job.save_array("values", np.arange(job.params["n"]))
    job.save_json("about", {"n": job.params["n"]})


def make_total(job: Job) -> None:
    """Write the sum of the upstream numbers."""
    _note(job)
    job.save_json("total", int(job.open("numbers").array("values").sum()))


def make_choice(job: Job) -> None:
    """Write the choice of the parameters."""
    job.save_json("choice", job.params["choice"])


def make_objects(job: Job) -> None:
    """Try to store Python objects."""
    job.save_array("objects", np.array([{"a": 1}, None], dtype=object))


def make_object_archive(job: Job) -> None:
    """Try to store Python objects in an archive."""
    job.save_arrays("objects", {"x": np.array([{"a": 1}, None], dtype=object)})


def make_big(job: Job) -> None:
    """Write two megabytes in the format of `kind`."""
    values = np.arange(250_000, dtype=np.float64)
    match job.params["kind"]:
        case "array":
            job.save_array("big", values)
        case "arrays":
            job.save_arrays("big", {"x": values})
        case "matrix":
            from scipy.sparse import csr_matrix

            job.save_matrix("big", csr_matrix(values))
        case "table":
            job.save_table("big", {"x": values})
        case "json":
            job.save_json("big", values.tolist())


def fail_halfway(job: Job) -> None:
    """Write one file, then raise."""
    job.save_json("half", 1)
    raise ValueError("the second half is missing")


def die_once(job: Job) -> None:
    """Write one file and, when first called, be killed."""
    first = not Path(job.params["count"]).exists()
    _note(job)
    job.save_json("value", 1)
    if first:
        os.kill(os.getpid(), signal.SIGKILL)


def _note(job: Job) -> None:
    if "count" in job.params:
        with Path(job.params["count"]).open("a") as stream:
            stream.write(f"{os.getpid()}\n")


def echo(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what was sent."""
    return payload


def process_id(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the child's process id, and its parent's."""
    return {"pid": os.getpid(), "parent": os.getppid()}


def raise_error(payload: dict[str, Any]) -> dict[str, Any]:
    """Raise the error of the given type and arguments."""
    kind = {"ValueError": ValueError, "OSError": OSError, "SystemExit": SystemExit}[payload["type"]]
    raise kind(*payload["args"])


def return_set(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON cannot hold."""
    return {"set": {1, 2}}


def kill_itself(payload: dict[str, Any]) -> dict[str, Any]:
    """Die by the given signal."""
    os.kill(os.getpid(), payload["signal"])
    time.sleep(10)
    return {}


def exit_silently(payload: dict[str, Any]) -> dict[str, Any]:
    """End without a word."""
    os._exit(3)


def sleep(payload: dict[str, Any]) -> dict[str, Any]:
    """Write the child's process id to a file and sleep."""
    Path(payload["file"]).write_text(f"{os.getpid()} {os.getppid()}")
    time.sleep(payload["seconds"])
    return {}


def allocate(payload: dict[str, Any]) -> dict[str, Any]:
    """Write the child's process id to a file, fill so many megabytes and keep them for a while."""
    Path(payload["file"]).write_text(f"{os.getpid()} {os.getppid()}")
    held = np.ones(payload["megabytes"] * 125_000)
    time.sleep(payload["seconds"])
    return {"sum": float(held.sum())}


def thread_counts(payload: dict[str, Any]) -> dict[str, Any]:
    """Return how many threads each of the child's numeric libraries may use."""
    import scipy.linalg
    from threadpoolctl import threadpool_info

    scipy.linalg.svd(np.eye(3))
    return {"threads": [pool["num_threads"] for pool in threadpool_info()]}


def make_noise(payload: dict[str, Any]) -> dict[str, Any]:
    """Write to standard output and standard error, past Python and through it."""
    os.write(1, b"\x00\xff noise\n" * 1000)
    os.write(2, b"noise\n" * 1000)
    print("noise", flush=True)
    return {"ok": True}


def nest(payload: dict[str, Any]) -> dict[str, Any]:
    """Run a computation isolated once more, from inside a child."""
    from textbench.tasks.storage import isolate

    return isolate.run("tests.plumbing:process_id", {}) | {"outer": os.getpid()}
