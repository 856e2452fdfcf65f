"""What a sentence model's folder says of itself: modules, pooling, the longest text, prompts, and its fingerprint."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from textbench.featurizers._encoders.places import NoModel, find

POOLINGS = ("mean", "cls", "max", "lasttoken")
DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "I8": "<i1"}
WEIGHTS = ("model.safetensors", "model.onnx", "onnx/model.onnx", "pytorch_model.bin")
NOTHING: dict[str, Any] = {}
NO_LIMIT = 10**6  # tokenizers say one that is beyond where they have none
# Those of RoBERTa count positions from after that of padding, which is the second.
OFFSET = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}


@dataclass(frozen=True)
class ModelFolder:
    """A model's folder as its files describe it.

    `pooling` is one of POOLINGS, `dense` the folders of linear layers after it, `is_normalized` whether vectors end
    with unit length, `max_tokens` the longest text in pieces, special ones included, and `most_tokens` the longest that
    its positions allow, `prompts` what goes before a text by name, `pools_prompt` whether that counts in pooling,
    `fingerprint` the sha256 of all that shapes its vectors.
    """

    path: Path
    config: Mapping[str, Any]
    transformer: Path
    pooling: str
    is_normalized: bool
    max_tokens: int
    most_tokens: int
    dense: tuple[Path, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    pools_prompt: bool = True
    fingerprint: str = ""

    @functools.cached_property
    def onnx(self) -> Path | None:
        """The model as an ONNX file, if it comes as one."""
        places = (self.transformer / name for name in ("model.onnx", "onnx/model.onnx"))
        return next((place for place in places if place.is_file()), None)

    @functools.cached_property
    def safetensors(self) -> Path | None:
        """The weights, if they come as safetensors."""
        place = self.transformer / "model.safetensors"
        return place if place.is_file() else None


def open_model(model: str) -> ModelFolder:
    """Return a model by folder, package or name. Raises NoModel where it is not there or is not understood."""
    path = find(model)
    stamps = tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in model_files(path))
    return _opened(path, stamps)


@functools.lru_cache(maxsize=8)
def _opened(path: Path, stamps: tuple[tuple[Path, int, int], ...]) -> ModelFolder:
    modules = _json(path / "modules.json") or [
        {"type": "Transformer", "path": ""},
        {"type": "Pooling", "path": "1_Pooling"},
    ]
    folders: dict[str, list[Path]] = {}
    for module in modules:
        folders.setdefault(module["type"].rpartition(".")[2], []).append(path / module["path"])
    unknown = folders.keys() - {"Transformer", "Pooling", "Dense", "Normalize"}
    if unknown or "Transformer" not in folders:
        raise NoModel(
            f"{path}: a sentence model is Transformer, Pooling, Dense, Normalize, got {', '.join(unknown) or 'none'}"
        )
    transformer = folders["Transformer"][0]
    config, said = _json(transformer / "config.json"), _json(path / "config_sentence_transformers.json")
    if not config or not (transformer / "tokenizer.json").is_file():
        raise NoModel(f"{path} must hold config.json and tokenizer.json")
    positions = (config.get("max_position_embeddings") or 0) - OFFSET.get(config.get("model_type"), 0)
    limits = [
        _json(transformer / "sentence_bert_config.json").get("max_seq_length"),
        _json(transformer / "tokenizer_config.json").get("model_max_length"),
        positions,
    ]
    longest = min((int(limit) for limit in limits if limit and 0 < limit < NO_LIMIT), default=512)
    pooling = _json(folders.get("Pooling", [path])[0] / "config.json") if "Pooling" in folders else NOTHING
    return ModelFolder(
        path=path,
        config=config,
        transformer=transformer,
        pooling=_pooling(pooling, path),
        is_normalized="Normalize" in folders,
        max_tokens=longest,
        most_tokens=positions if positions > 0 else longest,
        dense=tuple(folders.get("Dense", [])),
        prompts=said.get("prompts") or {},
        default_prompt=said.get("default_prompt_name"),
        pools_prompt=pooling.get("include_prompt", True),
        fingerprint=fingerprint_of(path, [file for file, *_ in stamps]),
    )


def _pooling(said: Mapping[str, Any], path: Path) -> str:
    """Return how a model pools, as sentence-transformers writes it: a mode since 5.4, before that a switch for each."""
    if not said:  # a transformer by itself
        return "mean"
    mode = said.get("pooling_mode", [])
    found = [mode] if isinstance(mode, str) else [str(one) for one in mode]
    found += [
        name.removeprefix("pooling_mode_").partition("_token")[0]
        for name, is_on in said.items()
        if name.startswith("pooling_mode_") and is_on
    ]
    if len(found) != 1 or found[0] not in POOLINGS:
        raise NoModel(
            f"{path}: pooling must be one of {', '.join(POOLINGS)}, got {', '.join(found) or 'none'}"
        )
    return found[0]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return NOTHING
    except (OSError, ValueError) as error:
        raise NoModel(f"{path} cannot be read: {error}") from error


def model_files(path: Path) -> list[Path]:
    """Return what shapes a model's vectors: weights, tokenizer and configurations."""
    kinds = (".safetensors", ".onnx", ".json", ".bin", ".onnx_data")
    return sorted(
        file for file in path.rglob("*") if file.suffix in kinds and file.name != "data_config.json"
    )


def fingerprint_of(path: Path, files: list[Path]) -> str:
    """Return the sha256 of these files of a folder, by their names in it."""
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        total.update(f"{file.relative_to(path)} {digest}\n".encode())
    return total.hexdigest()


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file by name; halves become float32.

    Source: the format's page: a length, a JSON header with type, shape and place of each array, and their bytes.
    Raises NoModel for a file that is none, or a type that numpy has not.
    """
    data = path.read_bytes()
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        found = {}
        for name, entry in header.items():
            if name != "__metadata__":
                start, end = (8 + size + offset for offset in entry["data_offsets"])
                array = np.frombuffer(data[start:end], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
                found[name] = array.astype(np.float32) if array.dtype.kind == "f" else array
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise NoModel(
            f"{path} is no safetensors file of plain numbers ({type(error).__name__}: {error})"
        ) from error
