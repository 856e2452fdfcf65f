"""Texts turned into vectors by a sentence model: pieces, one text at a time through a backend, pooling."""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from textbench.featurizers._encoders import bert, onnx_graph
from textbench.featurizers._encoders.folder import ModelFolder, open_model, read_safetensors
from textbench.featurizers._encoders.places import NoModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BACKENDS = ("onnx", "numpy", "torch")
WAY = 1  # one more whenever a change of this folder's code changes vectors
# What each needs beside what everybody has, and the extra that brings it.
LIBRARIES = {
    "onnx": (("onnx", "onnxruntime", "tokenizers"), "neural"),
    "numpy": (("tokenizers",), "neural"),
    "torch": (("sentence_transformers", "tokenizers"), "torch"),
}


@dataclass(frozen=True)
class Encoder:
    """A sentence model as it is used: `max_tokens` pieces, special ones included, of a text with its `prompt` before.

    Of longer texts the rest is left out (`long` "truncate"), or they are cut into parts of that length whose vectors
    are averaged by their pieces ("chunks"). `pooling` is one of POOLINGS.
    """

    folder: ModelFolder
    max_tokens: int
    prompt: str
    pooling: str
    long: str
    backend: str

    def described(self) -> dict[str, Any]:
        """Return what shapes the vectors, as JSON values: kept ones of another description are not taken for these."""
        libraries = (name.replace("_", "-") for name in LIBRARIES[self.backend][0])
        return {
            "way": WAY,
            "libraries": {name: importlib.metadata.version(name) for name in libraries},
            "fingerprint": self.folder.fingerprint,
            "max_tokens": self.max_tokens,
            "prompt": self.prompt,
            "pooling": self.pooling,
            "long": self.long,
            "backend": self.backend,
        }

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer; what its file says of truncation and padding is switched off."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.folder.transformer / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def n_special(self) -> int:
        """How many pieces the tokenizer adds to every text."""
        return int(self.tokenizer.num_special_tokens_to_add(is_pair=False))

    @cached_property
    def forward(self) -> Callable[[np.ndarray], np.ndarray]:
        """What gives of a text's ids, (n_pieces,), its last layer (n_pieces, hidden_size), or one vector.

        Raises NoModel for files that the backend does not read.
        """
        if self.backend == "torch":
            return self._torch()
        if self.backend == "onnx" and self.folder.onnx is not None:
            return onnx_graph.session(self.folder.onnx, self.folder.config["hidden_size"])
        if self.folder.safetensors is None:
            raise NoModel(
                f"{self.folder.path}: backend {self.backend!r} reads model.safetensors or model.onnx, got neither"
            )
        config = self.folder.config
        weights = bert.weights_of(read_safetensors(self.folder.safetensors), config)
        if self.backend == "onnx":
            return onnx_graph.session(onnx_graph.written(weights, config), config["hidden_size"])
        return lambda ids: bert.forward(weights, config, ids)

    @cached_property
    def dense(self) -> list[tuple[np.ndarray, np.ndarray, str]]:
        """The linear layers after pooling: weights, biases, and what is applied to their output.

        Raises NoModel for an activation that is neither, a residual, and weights that are no safetensors.
        """
        found = []
        for folder in self.folder.dense:
            import json

            config = json.loads((folder / "config.json").read_text("utf-8"))
            if config.get("use_residual"):
                raise NoModel(f"{folder}: a linear layer with a residual is not known here")
            if not (folder / "model.safetensors").is_file():
                raise NoModel(f"{folder} must hold model.safetensors")
            arrays = read_safetensors(folder / "model.safetensors")
            activation = str(config.get("activation_function", "Identity")).rpartition(".")[2]
            if activation not in ("Identity", "Tanh"):
                raise NoModel(f"{folder}: a linear layer ends with Identity or Tanh, got {activation}")
            weight = arrays["linear.weight"]
            found.append((weight, arrays.get("linear.bias", np.zeros(len(weight), np.float32)), activation))
        return found

    @property
    def n_dimensions(self) -> int:
        """The numbers of a vector."""
        return len(self.dense[-1][0]) if self.dense else int(self.folder.config["hidden_size"])

    def ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the pieces of every text, int64 (n_pieces,), whole, without special ones; none of an empty text."""
        found = self.tokenizer.encode_batch([self.prompt + text for text in texts], add_special_tokens=False)
        return [
            np.array(one.ids if text.strip() else [], dtype=np.int64)
            for text, one in zip(texts, found, strict=True)
        ]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the texts' vectors, float32 (n_texts, n_dimensions); an empty one has zeros and is not read.

        One text at a time on one thread: a text has the same bits alone, among others, and on any machine's cores.
        """
        found = np.zeros((len(texts), self.n_dimensions), dtype=np.float32)
        for row, pieces in enumerate(self.ids(texts)):
            if len(pieces):
                found[row] = self.vector(pieces)
        return found

    def batches(self, texts: Sequence[str], size: int) -> Iterator[list[str]]:
        """Yield the texts in their order, `size` at a time."""
        for start in range(0, len(texts), size):
            yield list(texts[start : start + size])

    def vector(self, pieces: np.ndarray) -> np.ndarray:
        """Return the vector of one text's pieces, int64 (n_pieces,): float32 (n_dimensions,)."""
        room = self.max_tokens - self.n_special
        parts = [pieces[start : start + room] for start in range(0, len(pieces), room)]
        layers = [self.forward(self._framed(part)) for part in parts[: self._n_parts]]
        vectors = [self._finished(self._pooled(layer), is_pooled_here=layer.ndim == 2) for layer in layers]
        if len(vectors) == 1:
            return vectors[0]
        mean = np.average(vectors, axis=0, weights=[len(part) for part in parts]).astype(np.float32)
        return _unit(mean) if self.folder.is_normalized else mean

    @property
    def _n_parts(self) -> int | None:
        return 1 if self.long == "truncate" else None

    def n_read(self, n_pieces: np.ndarray) -> np.ndarray:
        """Return how many pieces of each text are read; n_pieces: how many there are, ints (n_texts,)."""
        room = self.max_tokens - self.n_special
        return np.minimum(n_pieces, room) if self.long == "truncate" else n_pieces

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        """The special pieces before and after a text."""
        framed = self.tokenizer.encode("a").ids
        plain = self.tokenizer.encode("a", add_special_tokens=False).ids
        start = next(i for i in range(len(framed)) if framed[i : i + len(plain)] == plain)
        return framed[:start], framed[start + len(plain) :]

    def _framed(self, pieces: np.ndarray) -> np.ndarray:
        first, last = self._frame
        return np.concatenate([first, pieces, last]).astype(np.int64)

    def _pooled(self, layer: np.ndarray) -> np.ndarray:
        if layer.ndim == 1:
            if self.pooling != self.folder.pooling:
                raise NoModel(
                    f"{self.folder.path}: its ONNX file gives pooled vectors alone; pooling can only be 'auto'"
                )
            return layer
        pooled = {
            "mean": lambda: layer.mean(axis=0),
            "cls": lambda: layer[0],
            "max": lambda: layer.max(axis=0),
            "lasttoken": lambda: layer[-1],
        }
        return np.asarray(pooled[self.pooling](), dtype=np.float32)

    def _finished(self, vector: np.ndarray, *, is_pooled_here: bool) -> np.ndarray:
        """Return a pooled vector after the layers, which an ONNX file that pools has in it if its vector is as long."""
        is_whole = not is_pooled_here and len(vector) == self.n_dimensions
        for weight, bias, activation in [] if is_whole else self.dense:
            vector = weight @ vector + bias
            vector = np.tanh(vector) if activation == "Tanh" else vector
        return _unit(vector) if self.folder.is_normalized else vector

    def _torch(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the forward pass of sentence-transformers' own transformer, whatever its architecture."""
        import torch
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(self.folder.path), device="cpu", local_files_only=True)[0]

        def forward(ids: np.ndarray) -> np.ndarray:
            given = torch.from_numpy(ids[None])
            with torch.inference_mode():
                found = model({"input_ids": given, "attention_mask": torch.ones_like(given)})
            return np.asarray(found["token_embeddings"][0].numpy(), dtype=np.float32)

        return forward


def encoder_of(
    model: str,
    *,
    max_tokens: int | None = None,
    prompt: str | None = None,
    pooling: str = "auto",
    long: str = "truncate",
    backend: str = "onnx",
) -> Encoder:
    """Return a model ready to be used, with its own settings where none are given; `prompt` is a name of its, or a
    text.

    Raises NoModel for a library that is missing, a model that is not there, and more tokens than it can read.
    """
    require(backend)
    folder = open_model(model)
    if max_tokens is not None and not 3 <= max_tokens <= folder.most_tokens:
        raise NoModel(f"max_tokens of {model} must lie in 3 .. {folder.most_tokens}, got {max_tokens}")
    said = folder.default_prompt if prompt is None else prompt
    before = folder.prompts.get(said, said) if said else ""
    if before and not folder.pools_prompt:
        raise NoModel(f"{model} leaves its prompt out of pooling, which is not known here; say prompt=''")
    return Encoder(
        folder,
        max_tokens or folder.max_tokens,
        before,
        folder.pooling if pooling == "auto" else pooling,
        long,
        backend,
    )


def require(backend: str) -> None:
    """Raise NoModel, naming what to install, where a backend's libraries are missing."""
    libraries, extra = LIBRARIES[backend]
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        raise NoModel(
            f"backend {backend!r} needs {' and '.join(missing).replace('_', '-')}, not installed here: "
            f"pip install 'textbench[{extra}]'"
        )


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.float32((vector * vector).sum()))
    return np.asarray(vector / max(length, np.float32(1e-12)), dtype=np.float32)
