"""all-MiniLM-L6-v2 at 256 tokens: texts a CPU second through ONNX, plain numpy and sentence-transformers, in one run.

sentence-transformers is the extra torch (1.4 GB): without it the other sides are printed alone. A text costs 6 billion
operations, so that the speed of a matrix product on the same core bounds what any of them can do.
"""

import importlib.util
import time
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from textbench.featurizers._encoders.encoder import encoder_of
from textbench.featurizers.sentence import MINILM
from textbench.tasks import catalogue

N_TEXTS = 64
# Of a text of 256 pieces: 6 layers of 12 x 384^2 weights, and each piece's scores and mixture over 256 others.
OPERATIONS = 2 * 256 * 6 * (12 * 384**2 + 2 * 256 * 384)


def timed(encode: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> tuple[np.ndarray, float]:
    """Return the vectors of texts, and texts a CPU second."""
    encode(texts[:2])
    begun = time.process_time()
    found = encode(texts)
    return found, len(texts) / (time.process_time() - begun)


def product_speed() -> float:
    """Return the operations a CPU second of matrix products as large as the model's, by numpy."""
    rng = np.random.default_rng(0)
    x, weights = (rng.normal(size=shape).astype(np.float32) for shape in ((256, 384), (384, 1536)))
    begun = time.process_time()
    for _ in range(300):
        x @ weights
    return 300 * 2 * 256 * 384 * 1536 / (time.process_time() - begun)


def main() -> None:
    """Print a line a side: texts a CPU second on one thread, and how far the vectors are from those of ONNX."""
    encoder = encoder_of(MINILM)
    corpus = catalogue.dataset("20ng").load().load()
    sizes = [len(pieces) for pieces in encoder.ids(corpus.test_texts)]
    texts = [text for text, size in zip(corpus.test_texts, sizes, strict=True) if size >= 254][:N_TEXTS]
    with threadpool_limits(1):
        vectors, speed = timed(encoder.encode, texts)
        print(f"{len(texts)} texts of 20ng of 256 tokens and more, one thread")
        bound = product_speed()
        print(f"ONNX, a text at a time          {speed:6.1f} texts a CPU second")
        print(
            f"that is {1e-9 * speed * OPERATIONS:.0f} billion operations a CPU second; a matrix product alone does "
            f"{1e-9 * bound:.0f}, which would be {bound / OPERATIONS:.1f} texts"
        )
        print(f"same bits in any order: {bool((encoder.encode(texts[::-1])[::-1] == vectors).all())}")
        others = {"plain numpy": encoder_of(MINILM, backend="numpy").encode}
        if importlib.util.find_spec("sentence_transformers"):
            import torch
            from sentence_transformers import SentenceTransformer

            torch.set_num_threads(1)
            model = SentenceTransformer(str(encoder.folder.path), device="cpu")
            for size in (1, 8, 32):
                others[f"sentence-transformers, batch {size}"] = lambda some, size=size: model.encode(
                    list(some), batch_size=size, show_progress_bar=False
                )
        for name, encode in others.items():
            found, other = timed(encode, texts)
            off = np.abs(found - vectors).max()
            print(
                f"{name:<31} {other:6.1f} texts a CPU second ({speed / other:.1f} times slower), off by {off:.1e}"
            )
