"""CPU seconds of embedding as `--dry-run` predicts them, beside those it took: data sets, lengths and backends.

Of each data set texts drawn at random; a prediction is wrong where it is 20 % off.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from textbench.featurizers._encoders.encoder import encoder_of
from textbench.featurizers.sentence import MINILM
from textbench.tasks import catalogue, text_vectors

N_TEXTS = 100
DATASETS = ("r8", "20ng-stripped", "imdb")
SETTINGS = (
    {},
    {"max_tokens": 64},
    {"long": "chunks"},
    {"backend": "numpy", "max_tokens": 128},
)


def main() -> None:
    """Print a line a data set and setting: predicted, measured, and how far off."""
    worst = 0.0
    for dataset in DATASETS:
        texts = catalogue.dataset(dataset).load().load().train_texts
        some = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:N_TEXTS]]
        for settings in SETTINGS:
            with threadpool_limits(1):
                predicted = text_vectors.forecast(encoder_of(MINILM, **settings), some)
                encoder = encoder_of(MINILM, **settings)
                begun = time.process_time()
                encoder.encode(some)
                text_vectors.read_of(encoder, some)
                measured = time.process_time() - begun
            off = predicted / measured - 1
            worst = max(worst, abs(off))
            said = ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"
            print(
                f"{dataset:<14} {said:<31} predicted {predicted:6.1f} s, measured {measured:6.1f} s, {off:+.0%}",
                flush=True,
            )
    print(f"furthest off: {worst:.0%}, {'within' if worst <= 0.2 else 'more than'} 20 %")


if __name__ == "__main__":
    main()
