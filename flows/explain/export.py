"""The exported file: a fitted representation and its probe in one .npz without pickle, applied to new texts.

The file is a zip of .npy arrays, `featurizer/<name>` and `probe/<name>`, and of `manifest.json`, which holds
the rest: the run the model comes from, token rule, vocabulary, class names, and the sha256 of each array.
"""

import contextlib
import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from textbench.tasks import InputError, catalogue
from textbench.tasks.joined import side_by_side
from textbench.tasks.sources.user_frame import checked_texts
from textbench.tasks.storage.files import whole

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from textbench.flows.results.runs import Run
    from textbench.tasks.storage.store import Artifact
    from textbench.tasks.tokens import TokenRule

FORMAT = "textbench model"
VERSION = 1
MANIFEST = "manifest.json"
ENDPOINT = "TEXTBENCH_ENDPOINT"
THRESHOLDS = "tuned_thresholds"  # of a classifier; a probe keeps its own


def _checksum(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(dict(manifest), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Answers:
    """What a classifier says of texts.

    `labels` are the class of each text, or the list of its labels. `margins` (n_texts,) say how far the class is ahead
    of the second, or how near the closest decision was. `values` (n_texts, n_classes) are of kind "probability", or
    "decision": a class's decision value.
    """

    labels: list[str] | list[list[str]]
    margins: "np.ndarray"
    kind: str
    classes: list[str]
    values: "np.ndarray"


@dataclass(frozen=True)
class Model:
    """A fitted representation and its probe: `manifest` (JSON values) and `arrays`, named as in the file."""

    manifest: Mapping[str, Any]
    arrays: "Mapping[str, np.ndarray]"
    method_file: str | None = None  # where the method is when it is a file of the user's own
    endpoint: str | None = None  # the address to which a model of a file may send texts
    is_of_file: bool = False

    @classmethod
    def from_run(cls, run: "Run", *, refit: bool = False) -> Self:
        """Gather the model of a finished run from its artifacts; with `refit` it is trained on all documents first.

        Raises InputError when they are gone.
        """
        import numpy as np

        from textbench.tasks.featurize import load_arrays

        asked = run.open("choice").meta["recipe"]["params"]
        if catalogue.method(asked["method"]).is_file:
            raise InputError(
                f"{run.row['method']} was read, not made here: there is no method to apply to new texts"
            )
        if catalogue.method(asked["method"]).is_ensemble:
            return cls._of_members(run, refit=refit)
        is_classifier = asked["probe"] is None
        vectors, made, result = run.open_refitted() if refit else run.open_fitted()
        learned = {"featurizer": {}, "probe": load_arrays(result, "probe")}
        parts = {} if is_classifier else run.parts_of(made)
        learned |= {part: load_arrays(features, "model") for part, features in parts.items()}
        if parts:
            learned["joined"] = made.json("model")
        elif not is_classifier:
            learned["featurizer"] = load_arrays(made, "model")
        elif "thresholds.npy" in result.meta["files"]:
            learned["probe"] |= {THRESHOLDS: result.array("thresholds")}
        arrays = {
            f"{part}/{name}": value
            for part, values in learned.items()
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **_of_run(run, arrays, refit=refit),
            # Of a method of the user's own only the file's name: nobody's code is run because a model names it.
            "method": Path(result.meta["recipe"]["params"]["method"]).name,
            "parts": {part: _name_of(features) for part, features in parts.items()},
            "classifier": result.meta["recipe"]["params"]["probe"],
            "libraries": result.meta["recipe"]["libraries"],
            "threads": made.meta["threads"],
            "token_rule": vectors.meta["recipe"]["params"]["rule"],
            "terms": vectors.json("terms"),
        }
        for part, values in learned.items():
            manifest[part] = {name: value for name, value in values.items() if f"{part}/{name}" not in arrays}
        return cls(manifest, arrays)

    @classmethod
    def _of_members(cls, run: "Run", *, refit: bool) -> Self:
        """Gather an ensemble of its members' models; what each counts, and thresholds, are as learned out of fold."""
        from textbench.flows.explain.together import members_that_count

        about, runs = members_that_count(run)
        result = run.open("result")
        models = {name: cls.from_run(one, refit=refit) for name, one in runs.items()}
        arrays = {
            f"{name}/{own}": array for name, model in models.items() for own, array in model.arrays.items()
        }
        if about["several_labels"]:
            arrays[THRESHOLDS] = result.array("thresholds")
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **_of_run(run, arrays, refit=refit),
            "method": run.row["method"],
            "classifier": None,
            "libraries": result.meta["recipe"]["libraries"],
            "threads": result.meta["threads"],
            "ensemble": about,
            "members": {name: model.manifest for name, model in models.items()},
        }
        return cls(manifest, arrays)

    def save(self, path: Path) -> None:
        """Write the model to `path`, whole or not at all. The same model gives the same bytes.

        Raises InputError where it cannot be written.
        """
        import numpy as np

        checksum = {"checksum": _checksum(self.manifest)}
        manifest = json.dumps(dict(self.manifest) | checksum, ensure_ascii=False, indent=1)
        try:
            with whole(path) as part, part.open("w+b") as stream:
                np.savez(stream, allow_pickle=False, **self.arrays)
                with zipfile.ZipFile(stream, "a") as archive:
                    # A ZipInfo without a date: the present one would make two exports differ.
                    archive.writestr(zipfile.ZipInfo(MANIFEST), manifest)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote, checking every array's sha256.

        Raises InputError when there is no such file, it is another kind of file, or it is damaged.
        """
        try:
            return replace(cls._read(path), is_of_file=True, endpoint=os.environ.get(ENDPOINT))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError) as error:
            if isinstance(error, InputError):
                raise
            reason = " ".join(str(error).split())[:120]
            raise InputError(f"{path} is damaged or not a file of `textbench export` ({reason})") from error

    @classmethod
    def _read(cls, path: Path) -> Self:
        import numpy as np

        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] != FORMAT:
            raise ValueError(f"its manifest says format {manifest['format']!r}")
        if manifest["version"] != VERSION:
            raise InputError(
                f"{path} has format version {manifest['version']!r}, this textbench reads {VERSION}; "
                "export it again"
            )
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files if name != MANIFEST}
        if manifest.pop("checksum") != _checksum(manifest) or manifest["sha256"].keys() != arrays.keys():
            raise ValueError("its manifest was altered")
        for name, digest in manifest["sha256"].items():
            if _digest(arrays[name]) != digest:
                raise ValueError(f"{name} does not have the recorded sha256")
        return cls(manifest, arrays)

    def features(self, texts: Iterable[str]) -> "np.ndarray | csr_matrix":
        """Return the texts' features, csr or float32 (n_texts, n_features): the same bits as in the run.

        Raises InputError for a method that classifies by itself.
        """
        if self.manifest["classifier"] is None:
            raise InputError(f"{self.manifest['method']} is a classifier: it gives labels, not features")
        with self._as_in_the_run():
            if not self._parts:
                return self._featurizer.transform(self._documents(texts, self._method.INPUT))
            given = checked_texts(texts)
            blocks = [
                method.transform(self._documents(given, module.INPUT))
                for module, method in self._parts.values()
            ]
            return side_by_side(blocks, **self.manifest["joined"])

    def transform(self, texts: Iterable[str]) -> "np.ndarray | csr_matrix":
        """Return the texts' features, as a scikit-learn transformer does."""
        return self.features(texts)

    def predict(self, texts: Iterable[str]) -> "list[str] | list[list[str]]":
        """Return the class of each text, or the list of its labels, as a scikit-learn classifier does."""
        return self.answer(texts).labels

    def feature_names(self) -> list[str]:
        """Return a name for each column of `features`."""
        if not self._parts:
            return self._names(self._method, self._featurizer)
        both = {part: self._names(*found) for part, found in self._parts.items()}
        return [f"{part}__{name}" for part, names in both.items() for name in names]

    def _names(self, module: Any, featurizer: Any) -> list[str]:
        terms = None if module.INPUT == "texts" else self.manifest["terms"]
        return [str(name) for name in featurizer.get_feature_names_out(terms)]

    def scores(self, texts: Iterable[str]) -> "np.ndarray":
        """Return the decision value of every class, float64 (n_texts, n_labels): the bits of the run's scores."""
        import numpy as np

        from textbench.tasks.fold_scores import every_class

        is_probe = self.manifest["classifier"] is not None
        documents = self.features(texts) if is_probe else self._documents(texts, self._method.INPUT)
        with self._as_in_the_run():
            decisions = self._probe.decision_function(documents)
        several = (self._probe.thresholds_ is not None) if is_probe else f"probe/{THRESHOLDS}" in self.arrays
        if several:
            return np.asarray(decisions, dtype=np.float64)
        return every_class(decisions, np.asarray(self._probe.classes_), len(self.manifest["target_names"]))

    def answer(self, texts: Iterable[str]) -> "Answers":
        """Return what the classifier says of each text."""
        import numpy as np

        if "ensemble" in self.manifest:
            return self._answer_together(list(texts))
        from textbench.tasks.predict import margin

        is_probe = self.manifest["classifier"] is not None
        documents = self.features(texts) if is_probe else self._documents(texts, self._method.INPUT)
        names = self.manifest["target_names"]
        with self._as_in_the_run():
            scores = self._probe.decision_function(documents)
            thresholds = self._probe.thresholds_ if is_probe else self.arrays.get(f"probe/{THRESHOLDS}")
            targets = self._probe.predict(documents) if thresholds is None else None
            has_probabilities = hasattr(self._probe, "predict_proba")
            values = self._probe.predict_proba(documents) if has_probabilities else scores
        if values.ndim == 1:
            values = np.column_stack([-values, values])[:, -len(self._probe.classes_) :]
        about = (
            "probability" if has_probabilities else "decision",
            [names[c] for c in self._probe.classes_],
            values,
        )
        if targets is not None:
            return Answers([names[target] for target in targets], margin(scores), *about)
        chosen = [[names[label] for label in row.nonzero()[0]] for row in scores > thresholds]
        return Answers(chosen, abs(scores - thresholds).min(axis=1), *about)

    def _answer_together(self, texts: Sequence[str]) -> "Answers":
        """Return what the members of an ensemble say of each text together; values are probabilities."""
        from textbench.evaluation.ensembles import as_probabilities
        from textbench.flows.explain.together import combined
        from textbench.tasks.predict import margin

        about, names = self.manifest["ensemble"], self.manifest["target_names"]
        given = [member.scores(texts) for member in self._members]
        with self._as_in_the_run():
            scores = combined(about, given)
        several = about["several_labels"]
        kind_and_values = ("probability", names, as_probabilities(scores, several_labels=several))
        if not several:
            return Answers([names[one] for one in scores.argmax(axis=1)], margin(scores), *kind_and_values)
        thresholds = self.arrays[THRESHOLDS]
        chosen = [[names[label] for label in row.nonzero()[0]] for row in scores > thresholds]
        return Answers(chosen, abs(scores - thresholds).min(axis=1), *kind_and_values)

    @cached_property
    def _members(self) -> "list[Model]":
        """The members of an ensemble, each a model of its own: it keeps its encoder and its fitted method."""
        return [
            replace(
                self,
                manifest=manifest,
                arrays={
                    key.removeprefix(f"{name}/"): one
                    for key, one in self.arrays.items()
                    if key.startswith(f"{name}/")
                },
            )
            for name, manifest in self.manifest["members"].items()
        ]

    @contextlib.contextmanager
    def _as_in_the_run(self) -> "Iterator[None]":
        """Limit linear algebra to the run's threads: they decide in which order products are added up.

        What an encoder lacks, or an endpoint does not answer, is said as an InputError.
        """
        with _pools(len(sys.modules)).limit(limits=self.manifest["threads"]):
            try:
                yield
            except (ValueError, RuntimeError) as error:
                from textbench.featurizers._encoders.endpoint import NoAnswer
                from textbench.featurizers._encoders.places import NoModel

                if isinstance(error, NoAnswer | NoModel):
                    raise InputError(" ".join(str(error).split())) from error
                raise

    def _documents(self, texts: Iterable[str], kind: str) -> Any:
        """Return texts as a method of this INPUT reads them."""
        import numpy as np

        given = checked_texts(texts)
        if not given:
            raise InputError("texts must be one or more, got none")
        if kind == "texts":
            return given
        ids, offsets = self._encode(given)
        return np.split(ids, offsets[1:-1]) if kind == "tokens" else self._counts(ids, offsets)

    @cached_property
    def _encode(self) -> "Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]":
        from textbench.tasks.tokens import TokenRule, encoder

        return encoder(self.manifest["terms"], TokenRule(**self.manifest["token_rule"]))

    @cached_property
    def _counts(self) -> "Callable[[np.ndarray, np.ndarray], csr_matrix]":
        """`tasks.tokens.count` with the tables of n-grams made once: they take as long as hundreds of texts."""
        from functools import partial

        from textbench.tasks import ngrams

        terms = self.manifest["terms"]
        if self.manifest["token_rule"]["max_n"] == 1:
            return partial(ngrams.count, n_terms=len(terms))
        n_terms, tables = ngrams.tables_of(terms)
        return partial(ngrams.count_all, n_terms=n_terms, tables=tables)

    @cached_property
    def _method(self) -> Any:
        name = self.manifest["method"]
        if not name.endswith(".py"):
            return catalogue.method(name).load()
        if self.method_file is None:
            raise InputError(
                f"this model's method is a file of its maker's, {name}; say where it is with --method"
            )
        return catalogue.method(self.method_file).load()

    @cached_property
    def _parts(self) -> dict[str, tuple[Any, Any]]:
        """The methods of a join, each as its module and fitted; none of another model."""
        found = {}
        for part, name in self.manifest.get("parts", {}).items():
            if name.endswith(".py"):  # nobody's code is run because a model names it
                raise InputError(f"a join with a method of its maker's, {name}, is not read")
            module = catalogue.method(name).load()
            found[part] = (module, self._allowed(module.build().from_arrays(self._learned(part))))
        return found

    @cached_property
    def _featurizer(self) -> Any:
        return self._allowed(self._method.build().from_arrays(self._learned("featurizer")))

    def _allowed(self, fitted: Any) -> Any:
        """Return a fitted method. Raises InputError for an endpoint that a file names and the caller does not."""
        url, key = (getattr(fitted, name, None) for name in ("url", "key_env"))
        if self.is_of_file and url is not None and url != self.endpoint:
            also = f", with what is in ${key}" if key else ""
            raise InputError(
                f"this model sends texts to {url}{also}; if that is meant, say --endpoint {url}, or {ENDPOINT}={url}"
            )
        return fitted

    @cached_property
    def _probe(self) -> Any:
        from textbench.evaluation.probes.catalogue import probe_class

        if self.manifest["classifier"] is None:
            learned = self._learned("probe")
            learned.pop(THRESHOLDS, None)
            return self._method.build().from_arrays(learned)
        return probe_class(self.manifest["classifier"]).from_arrays(self._learned("probe"))

    def _learned(self, part: str) -> dict[str, Any]:
        prefix = f"{part}/"
        arrays = {name.removeprefix(prefix): a for name, a in self.arrays.items() if name.startswith(prefix)}
        return arrays | self.manifest[part]


def _of_run(run: "Run", arrays: "Mapping[str, np.ndarray]", *, refit: bool) -> dict[str, Any]:
    """Return what every manifest says: the run, what it was trained on, its classes, and the sha256 of each array."""
    return {
        "run": {
            name: run.row[name] for name in ("dataset", "protocol", "seed", "params", "metrics", "run_id")
        },
        "cell": run.row["key"],
        "training": {
            "documents": "training and test" if refit else "training",
            "accuracy": "not measured: no documents are left" if refit else "the metrics of the run",
        },
        "target_names": run.open("corpus").json("corpus")["target_names"],
        "sha256": {name: _digest(array) for name, array in arrays.items()},
    }


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    """Return the thread pools of linear algebra, looked for anew once modules were imported, which may bring some.

    Looking takes ten milliseconds, more than to answer one text.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _name_of(features: "Artifact") -> str:
    """Return the method of a part of a join. Raises InputError for a file of the user's: an export names one alone."""
    name = str(features.meta["recipe"]["params"]["method"])
    if name.endswith(".py"):
        raise InputError(
            f"a join with a method of your own, {name}, is not exported: export a run of each part"
        )
    return name


def as_read(
    ids: "np.ndarray", offsets: "np.ndarray", terms: Sequence[str], rule: "TokenRule", kind: str
) -> Any:
    """Return texts that were encoded (`tasks.tokens.encode`) as a method reads them.

    `kind` is its INPUT: of tokens a list of int32 arrays, of counts csr int32 (n_texts, n_terms).
    """
    import numpy as np

    from textbench.tasks.tokens import count

    return np.split(ids, offsets[1:-1]) if kind == "tokens" else count(ids, offsets, terms, rule)


def _digest(array: "np.ndarray") -> str:
    import numpy as np

    head = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()
