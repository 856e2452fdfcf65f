"""Topics of tokens: latent Dirichlet allocation by Gibbs sampling, which gives every token of a document one topic.

Source: T. Griffiths and M. Steyvers, "Finding scientific topics", PNAS 101 (2004), equation (5), as in tomotopy.

`documents` are int32 arrays of token ids (n_tokens,).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_TOPICS, ETA, N_ITER = 80, 0.01, 200
TOTAL_ALPHA = 50.0  # alpha is this over the number of topics, unless said otherwise


@dataclass(frozen=True)
class TokenTopics:
    """A topic for each token of documents: int32 (n_tokens,), the documents one after another, with its model's priors.

    `n_topics`; `alpha`, the prior of a document's topics, and `eta`, of a topic's terms, both symmetric.
    """

    topics: np.ndarray
    n_topics: int
    alpha: float
    eta: float

    def counts(self, tokens: np.ndarray, n_terms: int) -> np.ndarray:
        """Return how often each term has each topic, float64 (n_terms, n_topics); tokens: (n_tokens,).

        Raises ValueError for another number of tokens, or topics that are none.
        """
        topics = np.asarray(self.topics)
        if len(topics) and not 0 <= topics.min() <= topics.max() < self.n_topics:
            raise ValueError(
                f"topics must be below n_topics = {self.n_topics}: got {topics.min()} .. {topics.max()}"
            )
        if len(tokens) != len(self.topics):
            raise ValueError(
                f"token_topics must hold a topic for each of {len(tokens)} tokens: got {len(self.topics)}"
            )
        pairs = tokens.astype(np.int64) * self.n_topics + self.topics
        found = np.bincount(pairs, minlength=n_terms * self.n_topics)
        return found.reshape(n_terms, self.n_topics).astype(np.float64)


def sample(
    documents: Sequence[np.ndarray],
    seed: int | None,
    *,
    n_topics: int = N_TOPICS,
    alpha: float | None = None,
    eta: float = ETA,
    n_iter: int = N_ITER,
) -> TokenTopics:
    """Return the topics after `n_iter` sweeps over documents of int32 token ids each; one thread.

    `alpha` is 50 over the number of topics where it is None.
    """
    from tomotopy import LDAModel

    prior = TOTAL_ALPHA / n_topics if alpha is None else alpha
    own = int(np.random.default_rng(seed).integers(2**31))
    model = LDAModel(k=int(n_topics), alpha=float(prior), eta=float(eta), seed=own)
    model.optim_interval = 0  # the priors stay as given
    for document in documents:
        if len(document):
            model.add_doc([str(term) for term in document.tolist()])
    topics: list[np.ndarray] = [np.zeros(0, dtype=np.int32)]
    if len(model.docs):
        # The result depends on the number of workers, so it is one wherever this runs.
        model.train(int(n_iter), workers=1)
        topics += [np.asarray(document.topics, dtype=np.int32) for document in model.docs]
    return TokenTopics(np.concatenate(topics), int(n_topics), float(prior), float(eta))
