"""all-MiniLM-L6-v2 at 256 tokens: texts a CPU second through ONNX, plain numpy and sentence-transformers, in one run.

sentence-transformers is the extra torch (1.4 GB): without it the other sides are printed alone.
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


def timed(encode: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> tuple[np.ndarray, float]:
    """Return the vectors of texts, and texts a CPU second."""
    encode(texts[:2])
    begun = time.process_time()
    found = encode(texts)
    return found, len(texts) / (time.process_time() - begun)


def main() -> None:
    """Print a line a side: texts a CPU second on one thread, and how far the vectors are from those of ONNX."""
    encoder = encoder_of(MINILM)
    corpus = catalogue.dataset("20ng").load().load()
    sizes = [len(pieces) for pieces in encoder.ids(corpus.test_texts)]
    texts = [text for text, size in zip(corpus.test_texts, sizes, strict=True) if size >= 254][:N_TEXTS]
    with threadpool_limits(1):
        vectors, speed = timed(encoder.encode, texts)
        print(f"{len(texts)} texts of 20ng of 256 tokens and more, one thread")
        print(f"ONNX, a text at a time          {speed:6.1f} texts a CPU second")
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
            found, speed = timed(encode, texts)
            print(f"{name:<31} {speed:6.1f} texts a CPU second, off by {np.abs(found - vectors).max():.1e}")
