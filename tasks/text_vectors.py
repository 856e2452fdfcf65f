"""Text vectors: what a pretrained model makes of each text of a corpus, an artifact that methods and trials share.

No text is embedded twice: vectors are kept in chunks beside the store, by the model's fingerprint and all settings that
shape them, and found again by the text's sha256. A chunk is written as it is full, so that a kill loses one at most.
"""

import hashlib
import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from textbench.tasks import InputError, catalogue
from textbench.tasks.storage.files import whole
from textbench.tasks.storage.garbage import EMBEDDINGS
from textbench.tasks.storage.locks import locked
from textbench.tasks.storage.recipe import Reference, canonical_json, refer

if TYPE_CHECKING:
    import numpy as np

    from textbench.featurizers._encoders.encoder import Encoder
    from textbench.featurizers._encoders.endpoint import Endpoint
    from textbench.tasks.storage.store import Artifact, Job, Store

CHUNK = 1024  # texts
N_TURNS = 10  # of measuring how fast a model is
PARTS = ("train", "test")


def reference(corpus: Reference, entry: catalogue.Entry, params: Mapping[str, Any]) -> Reference:
    """Return the text-vectors artifact of a corpus by a method's encoder.

    Files: train.npy and test.npy, float32 (n_documents, n_dimensions), zero for an empty text; about.json, the texts'
    pieces and how many of them were read. Raises InputError for a model or a library that is not on this machine.
    """
    own = encoding(entry, params)
    recipe = {"method": _where(entry), "encoding": own, "made": encoder_of(entry, own).described()}
    uses = entry.code("encoder")
    return refer(
        "textbench.tasks.text_vectors:compute", recipe, {"corpus": corpus}, uses, stage="text_vectors"
    )


def encoding(entry: catalogue.Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a method's parameters that shape its text vectors: the arguments of its `encoder`."""
    known = inspect.signature(entry.load().encoder).parameters
    return {name: value for name, value in params.items() if name in known}


def _where(entry: catalogue.Entry) -> str:
    return str(entry.path) if entry.is_own else entry.name


def encoder_of(entry: catalogue.Entry, params: Mapping[str, Any]) -> "Encoder | Endpoint":
    """Return what gives texts their vectors by a method with these parameters.

    Raises InputError for a model or a library that is not on this machine, and settings that are none.
    """
    from textbench.featurizers._encoders.places import NoModel

    try:
        found: Encoder | Endpoint = entry.load().encoder(**params)
        return found
    except NoModel as error:
        raise InputError(f"{entry.name}: {error}") from error


def compute(job: "Job") -> None:
    """Embed the documents of both parts, each different text once; write vectors and what was read of them."""
    import numpy as np

    encoder = encoder_of(catalogue.method(job.params["method"]), job.params["encoding"])
    corpus = job.open("corpus")
    texts = {part: corpus.table(part, ["text"])["text"].to_pylist() for part in PARTS}
    rows = embedded([text for part in PARTS for text in texts[part]], encoder, job.params["made"], job.store)
    width = len(next(iter(rows.values())))
    for part in PARTS:
        job.save_matrix(part, np.array([rows[text] for text in texts[part]]).reshape(-1, width))
    job.save_json("about", {part: read_of(encoder, texts[part]) for part in PARTS})
    if is_sent(encoder):
        job.save_json("sent", {"to": encoder.host} | encoder.usage)


def is_sent(encoder: "Encoder | Endpoint") -> TypeGuard["Endpoint"]:
    """Tell whether texts go to an endpoint, perhaps away from this machine."""
    from textbench.featurizers._encoders.endpoint import Endpoint

    return isinstance(encoder, Endpoint)


def table_reference(entry: catalogue.Entry, params: Mapping[str, Any]) -> Reference:
    """Return the artifact of a static model's table, of no corpus: table.npy and tokenizer.json.

    Raises InputError for a model that is not on this machine.
    """
    from textbench.featurizers._encoders.places import NoModel

    own = {name: value for name, value in params.items() if name == "model"}
    try:
        made = entry.load().source(**own)
    except NoModel as error:
        raise InputError(f"{entry.name}: {error}") from error
    recipe = {"method": _where(entry), "encoding": own, "made": made}
    uses = entry.code("table")
    return refer("textbench.tasks.text_vectors:compute_table", recipe, {}, uses, stage="piece_vectors")


def compute_table(job: "Job") -> None:
    """Write the vectors of all pieces of a static model, and its tokenizer."""
    vectors, tokenizer = catalogue.method(job.params["method"]).load().table(**job.params["encoding"])
    job.save_array("table", vectors)
    job.save_json("tokenizer", tokenizer)


def by_text(corpus: "Artifact", vectors: "Artifact") -> "dict[str, np.ndarray]":
    """Return the vector of each text of a corpus, float32 (n_dimensions,)."""
    return {
        text: row
        for part in PARTS
        for text, row in zip(
            corpus.table(part, ["text"])["text"].to_pylist(), vectors.array(part), strict=True
        )
    }


def read_of(encoder: "Encoder | Endpoint", texts: Sequence[str]) -> dict[str, int]:
    """Return how many texts and pieces there are, and how many of them were cut, and left out.

    What an endpoint cuts it does not say: nothing is said of that, and its pieces are a guess.
    """
    import numpy as np

    from textbench.featurizers._encoders.endpoint import Endpoint

    if isinstance(encoder, Endpoint):
        return {"n_documents": len(texts), "n_tokens": sum(map(encoder.tokens, texts))}
    sizes = np.array([len(pieces) for pieces in encoder.ids(texts)], dtype=np.int64)
    left = sizes - encoder.n_read(sizes)
    return {
        "n_documents": len(texts),
        "n_tokens": int(sizes.sum()),
        "n_documents_cut": int((left > 0).sum()),
        "n_tokens_cut": int(left.sum()),
    }


def unread(vectors: "Artifact") -> dict[str, float]:
    """Return the shares of the documents of a text-vectors artifact that were cut, and of the tokens not read.

    Empty where only an endpoint knows.
    """
    about = vectors.json("about").values()
    total = {name: sum(part[name] for part in about) for name in next(iter(about))}
    if "n_documents_cut" not in total:
        return {}
    return {
        "documents": total["n_documents_cut"] / total["n_documents"],
        "tokens": total["n_tokens_cut"] / max(1, total["n_tokens"]),
    }


def sent(vectors: "Artifact") -> dict[str, Any]:
    """Return what making a text-vectors artifact sent to an endpoint: `to`, `requests`, `texts` and its own `tokens`.

    Empty where nothing was sent.
    """
    return dict(vectors.json("sent")) if "sent.json" in vectors.meta["files"] else {}


def embedded(
    texts: Sequence[str], encoder: "Encoder | Endpoint", made: Mapping[str, Any], store: "Store"
) -> "dict[str, np.ndarray]":
    """Return the vector of each different text, float32 (n_dimensions,), and keep what had none before."""
    folder = _folder(store, made)
    with locked(folder / ".lock"):  # two runs that want the same texts embed them once
        known = _kept(folder, store.not_before)
        digests = {text: _digest(text) for text in texts}
        missing = [text for text, digest in digests.items() if digest not in known]
        if missing and is_sent(encoder):
            known |= _canary(encoder, folder, known)
        for some in encoder.batches(missing, CHUNK):
            vectors = encoder.encode(some)
            _keep(folder, [digests[text] for text in some], vectors)
            known |= dict(zip((digests[text] for text in some), vectors, strict=True))
    return {text: known[digest] for text, digest in digests.items()}


def _canary(
    encoder: "Endpoint", folder: Path, known: "Mapping[bytes, np.ndarray]"
) -> "dict[bytes, np.ndarray]":
    """See that an endpoint has the model that made the vectors kept here; return its canary's vector, kept too."""
    from textbench.featurizers._encoders.endpoint import CANARY

    digest = _digest(CANARY)
    if digest in known:
        encoder.check(known[digest])
    else:
        _keep(folder, [digest], encoder.canary[None])
    return {digest: known.get(digest, encoder.canary)}


def _folder(store: "Store", made: Mapping[str, Any]) -> Path:
    name = hashlib.sha256(canonical_json(dict(made)).encode()).hexdigest()[:32]
    return store.root.parent / EMBEDDINGS / name


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _chunks(folder: Path, not_before: float) -> Iterator[Path]:
    for path in sorted(folder.glob("*.npz")):
        if path.stat().st_mtime >= not_before:
            yield path


def _kept(folder: Path, not_before: float) -> "dict[bytes, np.ndarray]":
    """Return the vectors that are kept, by their texts' digests; a chunk that cannot be read counts as none."""
    import zipfile

    import numpy as np

    found: dict[bytes, np.ndarray] = {}
    for path in _chunks(folder, not_before):
        try:
            with np.load(path, allow_pickle=False) as chunk:
                digests, vectors = chunk["digests"], chunk["vectors"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            path.unlink(missing_ok=True)
            continue
        found |= {digest.tobytes(): row for digest, row in zip(digests, vectors, strict=True)}
    return found


def _keep(folder: Path, digests: Sequence[bytes], vectors: "np.ndarray") -> None:
    import numpy as np

    rows = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 32)
    with whole(folder / f"{time.time_ns()}.npz") as part, part.open("wb") as stream:
        np.savez(stream, allow_pickle=False, digests=rows, vectors=vectors)


def predicted(store: "Store", vectors: Reference) -> dict[str, Any] | None:
    """Return the CPU seconds that making text vectors will take, and what `read_of` says of all texts; None if stored.

    Of an endpoint `to` says where texts go, and the rest is of those that are still to be sent. None too where the
    documents are not here.
    """
    from textbench.featurizers._encoders.endpoint import Endpoint

    corpus = vectors.inputs["corpus"]
    if store.has(vectors) or not store.has(corpus):
        return None
    encoder = encoder_of(catalogue.method(vectors.params["method"]), vectors.params["encoding"])
    found = store.open(corpus)
    every = dict.fromkeys(text for part in PARTS for text in found.table(part, ["text"])["text"].to_pylist())
    known = _kept(_folder(store, vectors.params["made"]), store.not_before)
    texts = [text for text in every if _digest(text) not in known]
    if isinstance(encoder, Endpoint):
        where = {"to": encoder.host, "is_here": encoder.is_here}
        return where | read_of(encoder, [text for text in texts if text.strip()])
    return {"seconds": forecast(encoder, texts)} | read_of(encoder, list(every))


def forecast(encoder: "Encoder", texts: Sequence[str]) -> float:
    """Return the CPU seconds that embedding texts will take, by the speed of this machine now.

    Pieces are counted as they will be, twice; parts of five lengths are embedded in turns, and the seconds of others
    are read off the line through theirs.
    """
    import numpy as np

    begun = time.process_time()
    pieces = encoder.ids(texts)
    counting = time.process_time() - begun
    read = encoder.n_read(np.array([len(one) for one in pieces], dtype=np.int64))
    room = encoder.max_tokens - encoder.n_special
    lengths = np.unique(np.linspace(1, room, 5).astype(int))
    loading = _seconds(encoder, 1)
    taken = np.mean([[_seconds(encoder, length) for length in lengths] for _ in range(N_TURNS)], axis=0)
    parts, rest = np.divmod(read, room)
    seconds = parts * taken[-1] + np.where(rest > 0, np.interp(rest, lengths, taken), 0.0)
    return loading + float(seconds.sum()) + 2 * counting


def _seconds(encoder: "Encoder", n_pieces: int) -> float:
    import numpy as np

    begun = time.process_time()
    encoder.vector(np.full(n_pieces, 100, dtype=np.int64))
    return time.process_time() - begun
