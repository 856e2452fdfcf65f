"""Evaluate: train the probe with the chosen settings, predict the test documents, and read the test labels, once.

What is stored says everything of the predictions that a metric may ask; `tasks.score` computes the metrics from it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textbench.tasks import featurize, first_seed, fold_scores
from textbench.tasks.labels import chosen_rows, held_out, labelled
from textbench.tasks.storage.recipe import Reference, refer

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.tasks.storage.store import Artifact, Job

N_TOP = 5  # highest-scored labels that are kept of each document


def reference(corpus: Reference, vectors: Reference, choice: Reference) -> Reference:
    """Return the result artifact of a tuned method.

    Files: predictions.parquet, scores.npy (the decision values, float64 (n_test, n_labels)), per_class.json, the fitted
    probe's arrays and, of a representation with one label a document, neighbours.npz (the arrays of
    `evaluation.metrics.query_by_example.QueryScores`). Its meta.json has the seconds of the parts train, predict and
    by_example.

    A row of predictions is a document: its position, its id where the corpus has ids, target, predicted, margin, and
    its average precision as a query, nan if it was not asked (`evaluation.metrics.query_by_example.asked`); where
    documents have several labels, target and predicted are lists of them, `top` and `top_scores` its highest-scored
    labels, and precision_at_1 and label_ranking_average_precision its shares of those means.
    """
    params = {key: choice.params[key] for key in ("method", "seed", "probe", "labels")}
    inputs = {"corpus": corpus, "vectors": vectors, "choice": choice}
    return refer("textbench.tasks.predict:compute", params, inputs, uses(choice), stage="evaluate")


def uses(choice: Reference) -> list[tuple[str, ...]]:
    """Return what training a tuned method's classifier looks up by name: the method and the probe."""
    probe = choice.params["probe"]
    probes = [("textbench.evaluation.probes.catalogue", "PROBES", probe)] if probe else []
    return [*featurize.uses(choice.params["method"], choice.params["fixed"]), *probes]


def features_of(vectors: Reference, choice: "Artifact") -> Reference | None:
    """Return the features that a choice artifact settled on; None for a method that classifies by itself."""
    asked, params = choice.meta["recipe"]["params"], choice.json("choice")["params"]
    if asked["probe"] is None:
        return None
    return featurize.reference(vectors, asked["method"], params, asked["seed"], asked["labels"])


def compute(job: "Job") -> None:
    """Fit the classifier on the training documents and predict the test documents."""
    corpus, vectors, choice = (job.inputs[name] for name in ("corpus", "vectors", "choice"))
    if first_seed.stands_for(job, choice.params):
        job.take(job.store.open(reference(corpus, vectors, first_seed.choice(job))))
        return
    _train_and_predict(job)


def _train_and_predict(job: "Job") -> None:
    from textbench.tasks.corpus import read_targets

    corpus = job.open("corpus")
    documents, build = training(job)
    targets, rows = labelled(job)
    train = (chosen_rows(documents("train"), rows), targets)
    test = (documents("test"), read_targets(corpus, "test"))
    with job.timed("train"):
        classifier = build().fit(*train)
    names = corpus.json("corpus")["target_names"]
    if test[1].ndim == 2:
        _predict_several_labels(job, build, classifier, train, test, names)
    else:
        _predict_one_label(job, classifier, train, test, names)
    featurize.save_arrays(job, "probe", classifier.to_arrays())


def training(job: "Job") -> "tuple[Callable[[str], Any], Callable[[], Any]]":
    """Return what gives a part's documents as the classifier reads them, and what builds it as chosen."""
    return _probe(job) if job.params["probe"] else _classifier(job)


def _probe(job: "Job") -> "tuple[Callable[[str], Any], Callable[[], Any]]":
    """Return what gives a part's features, and what builds the probe with the chosen settings."""
    from textbench.evaluation.probes.catalogue import build_probe

    choice = job.open("choice")
    reference = features_of(job.inputs["vectors"], choice)
    assert reference is not None
    chosen, name, seed = choice.json("choice"), job.params["probe"], job.params["seed"]
    return (
        job.store.open(reference).matrix,
        lambda: build_probe(name, chosen["C"], seed, **chosen.get("settings", {})),
    )


def _classifier(job: "Job") -> "tuple[Callable[[str], Any], Callable[[], Any]]":
    """Return what gives a part's documents, and what builds the method that classifies by itself."""
    params = job.open("choice").json("choice")["params"]
    build, kind = featurize.builder(job.params["method"], params, job.params["seed"])
    return lambda part: featurize.documents(job, part, kind), build


def _predict_one_label(
    job: "Job", classifier: Any, train: tuple[Any, Any], test: tuple[Any, Any], names: list[str]
) -> None:
    """Predict the classes and, of a representation, rank the training documents by nearness to each test document."""
    from dataclasses import asdict

    import numpy as np

    from textbench.evaluation.metrics.query_by_example import asked, search_by_example
    from textbench.evaluation.metrics.single_label import per_class
    from textbench.tasks.corpus import identity

    documents, targets = test
    with job.timed("predict"):
        decisions = classifier.decision_function(documents)
        by_scores = getattr(classifier, "labels_of", None)  # a user's classifier has none
        predicted = by_scores(decisions) if by_scores else classifier.predict(documents)
    every = fold_scores.every_class(decisions, np.asarray(classifier.classes_), len(names))
    job.save_array("scores", every)
    columns: dict[str, Any] = _documents(job, len(targets)) | {
        "target": targets,
        "predicted": predicted,
        "margin": margin(decisions),
    }
    if job.params["probe"]:
        with job.timed("by_example"):
            known = identity(job.open("corpus"))
            rows = asked(known["n_train"] if known else len(train[1]), len(targets))
            queries = search_by_example(*train, documents[rows], targets[rows])
        job.save_arrays("neighbours", {name: np.asarray(values) for name, values in asdict(queries).items()})
        columns["average_precision"] = np.full(len(targets), np.nan)
        columns["average_precision"][rows] = queries.average_precision
    job.save_json("per_class", per_class(targets, predicted, names))
    job.save_table("predictions", columns)


def _predict_several_labels(
    job: "Job",
    build: "Callable[[], Any]",
    classifier: Any,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    names: list[str],
) -> None:
    """Tune the thresholds on the training documents, and predict the ranking of the labels and the decisions.

    The thresholds are tuned on the folds, or the validation documents, on which C was.
    """
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.evaluation.metrics.label_ranking import label_ranking_average_precision, precision_at_k
    from textbench.evaluation.metrics.multilabel import per_label
    from textbench.tasks.corpus import label_lists

    documents, targets = test
    with job.timed("train"):
        thresholds = _thresholds(job, build, *train)
    with job.timed("predict"):
        scores = classifier.decision_function(documents)
    job.save_array("scores", np.asarray(scores, dtype=np.float64))
    if job.params["probe"]:
        classifier.thresholds_ = thresholds
    else:
        job.save_array("thresholds", thresholds)
    predicted = csr_matrix((scores > thresholds).astype(np.int8))
    job.save_json("per_class", per_label(targets, predicted, names, thresholds))
    top = (-scores).argsort(axis=1, kind="stable")[:, :N_TOP]
    columns: dict[str, Any] = _documents(job, len(scores)) | {
        "target": label_lists(targets),
        "predicted": label_lists(predicted),
        "top": list(top),
        "top_scores": [row[labels] for row, labels in zip(scores, top, strict=True)],
        "precision_at_1": precision_at_k(targets, scores, 1),
        "label_ranking_average_precision": label_ranking_average_precision(targets, scores),
    }
    job.save_table("predictions", columns)


def _thresholds(job: "Job", build: "Callable[[], Any]", X: Any, Y: "csr_matrix") -> "np.ndarray":
    """Return the thresholds of the labels by the scores that tuning left, or by others like them."""
    from textbench.evaluation.probes.tuning import thresholds_of, tune_thresholds

    choice = job.open("choice")
    if fold_scores.are_in(choice):
        return thresholds_of(fold_scores.by_fold(choice), Y)
    n_folds = max(2, choice.json("choice")["n_folds"])  # C had no folds where one document trains
    features = features_of(job.inputs["vectors"], choice)
    made = featurize.in_folds(job, features) if features and "labels" in features.params else X
    return tune_thresholds(made, Y, build, n_folds, job.params["seed"], held_out(job, labelled(job)[1]))


def save_decisions(
    job: "Job",
    predicted: "np.ndarray | csr_matrix",
    scores: "np.ndarray",
    thresholds: "np.ndarray | None" = None,
) -> None:
    """Write the test documents' predictions, scores and per_class of who decides without a probe of ours.

    predicted: class ids (n_test,), or of several labels an indicator (n_test, n_labels); scores: float64 (n_test,
    n_labels); thresholds: those of several labels, (n_labels,), 0 if not given. Columns and files are those of
    `reference`, without by-example retrieval.
    """
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.evaluation.metrics.label_ranking import label_ranking_average_precision, precision_at_k
    from textbench.evaluation.metrics.multilabel import per_label
    from textbench.evaluation.metrics.single_label import per_class
    from textbench.tasks.corpus import label_lists, read_targets

    corpus, columns = job.open("corpus"), _documents(job, len(scores))
    names, targets = corpus.json("corpus")["target_names"], read_targets(corpus, "test")
    if targets.ndim == 1:
        columns |= {"target": targets, "predicted": predicted, "margin": margin(scores)}
        job.save_json("per_class", per_class(targets, predicted, names))
    else:
        decisions = csr_matrix(predicted, dtype=np.int8)
        top = (-scores).argsort(axis=1, kind="stable")[:, :N_TOP]
        columns |= {
            "target": label_lists(targets),
            "predicted": label_lists(decisions),
            "top": list(top),
            "top_scores": [row[labels] for row, labels in zip(scores, top, strict=True)],
            "precision_at_1": precision_at_k(targets, scores, 1),
            "label_ranking_average_precision": label_ranking_average_precision(targets, scores),
        }
        thresholds = np.zeros(len(names)) if thresholds is None else thresholds
        job.save_json("per_class", per_label(targets, decisions, names, thresholds))
    job.save_array("scores", scores)
    job.save_table("predictions", columns)


def _documents(job: "Job", n_documents: int) -> dict[str, Any]:
    """Return the columns that say which document a row is of."""
    from textbench.tasks.corpus import read_ids

    ids = read_ids(job.open("corpus"), "test")
    return {"document": range(n_documents)} | ({} if ids is None else {"id": ids})


def margin(decisions: "np.ndarray") -> "np.ndarray":
    """Return how far the winning class is ahead of the second, (n_documents,)."""
    import numpy as np

    if decisions.ndim == 1:
        return np.abs(decisions)
    highest = np.partition(decisions, -2, axis=1)[:, -2:]
    return highest[:, 1] - highest[:, 0]
