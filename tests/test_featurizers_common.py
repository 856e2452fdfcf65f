"""Every representation of the folder featurizers keeps the contract on its first page."""

import importlib
import inspect
import io
import json
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tasks import catalogue

METHODS = sorted(
    entry.module.partition(".")[2]
    for entry in catalogue.methods().values()
    # Methods that read token ids or word vectors, or classify by themselves, have tests like these of their own.
    if entry.constant("INPUT") == "counts" and not entry.constant("NEEDS") and not entry.is_classifier
)
RNG = np.random.default_rng(20)


def word_counts(n_documents: int, n_terms: int = 40) -> sp.csr_matrix:
    return sp.csr_matrix(RNG.poisson(0.4, size=(n_documents, n_terms)).astype(np.int32))


TRAIN, TEST = word_counts(30), word_counts(12)


@pytest.fixture(params=METHODS)
def module(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"featurizers.{request.param}")


def small(module: Any) -> Any:
    """The method at its defaults but for the seed and a number of components that fits 30 documents."""
    wanted = {"random_state": 0, "n_components": 5}
    accepted = inspect.signature(type(module.build())).parameters
    return module.build(**{name: value for name, value in wanted.items() if name in accepted})


def dense(features: sp.csr_matrix | np.ndarray) -> np.ndarray:
    return features.toarray() if isinstance(features, sp.csr_matrix) else features


def stored_and_read(arrays: dict[str, Any]) -> dict[str, Any]:
    """Write arrays as npz and the rest as JSON, and read them back."""
    file = io.BytesIO()
    matrices: dict[str, Any] = {
        name: value for name, value in arrays.items() if isinstance(value, np.ndarray)
    }
    np.savez(file, **matrices)
    text = json.dumps({name: value for name, value in arrays.items() if not isinstance(value, np.ndarray)})
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return {**loaded, **json.loads(text)}


def test_the_methods_are_found() -> None:
    assert {"binary", "counts", "frequency", "tfidf", "tfidf_log2", "lsi", "lsa_pca"} <= set(METHODS)


def test_docstring_describes_and_cites(module: Any) -> None:
    first, blank, *rest = module.__doc__.splitlines()
    assert first.endswith(".") and not blank
    assert re.search(r"^(Source|Reference): ", "\n".join(rest), flags=re.MULTILINE)


def test_search_space_holds_the_defaults(module: Any) -> None:
    parameters = inspect.signature(type(module.build())).parameters
    assert module.INPUT == "counts"
    for name, distribution in module.SEARCH_SPACE.items():
        default = parameters[name].default
        assert default is not inspect.Parameter.empty
        assert distribution._contains(distribution.to_internal_repr(default))


def test_unknown_parameter_is_refused(module: Any) -> None:
    with pytest.raises(TypeError, match="no_such_parameter"):
        module.build(no_such_parameter=1)


def test_init_stores_parameters_and_clone_copies_them(module: Any) -> None:
    fitted = small(module).fit(TRAIN)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() == small(module).get_params()
    with pytest.raises(NotFittedError):
        copy.transform(TEST)


def test_features_are_float32_rows_of_documents(module: Any) -> None:
    method = small(module).fit(TRAIN)
    features = method.transform(TEST)
    names = method.get_feature_names_out()
    assert features.dtype == np.float32
    assert features.shape == (TEST.shape[0], len(names))
    assert len(set(names)) == len(names)
    assert features.format == "csr" if sp.issparse(features) else features.flags.c_contiguous
    assert np.any(dense(features))


def test_fit_transform_is_fit_then_transform(module: Any) -> None:
    together, apart = small(module).fit_transform(TRAIN), small(module).fit(TRAIN).transform(TRAIN)
    assert dense(together).tobytes() == dense(apart).tobytes()


def test_same_seed_same_bits(module: Any) -> None:
    features = [dense(small(module).fit(TRAIN).transform(TEST)) for _ in range(2)]
    assert features[0].tobytes() == features[1].tobytes()


def test_a_document_alone_gets_the_features_it_gets_among_others(module: Any) -> None:
    method = small(module).fit(TRAIN)
    alone = np.vstack([dense(method.transform(TEST[i])) for i in range(TEST.shape[0])])
    np.testing.assert_allclose(alone, dense(method.transform(TEST)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_dtype_of_the_counts_does_not_matter(module: Any, dtype: type) -> None:
    expected = dense(small(module).fit(TRAIN).transform(TEST))
    features = dense(small(module).fit(TRAIN.astype(dtype)).transform(TEST.astype(dtype)))
    assert features.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_input_is_untouched_even_with_duplicates_and_stored_zeros(module: Any, dtype: type) -> None:
    raw = sp.csr_matrix(([1, 2, 0, 3, 1], [2, 0, 1, 0, 0], [0, 3, 5]), shape=(2, 4), dtype=dtype)
    clean = sp.csr_matrix(np.array([[2, 0, 1, 0], [4, 0, 0, 0]], dtype))
    before = [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)]
    method = small(module).fit(raw)
    features = method.transform(raw)
    assert [array.tobytes() for array in (raw.data, raw.indices, raw.indptr)] == before
    assert dense(features).tobytes() == dense(small(module).fit(clean).transform(clean)).tobytes()


def test_features_do_not_share_memory_with_the_input(module: Any) -> None:
    X = TRAIN.astype(np.float32)
    features = small(module).fit_transform(X)
    assert not np.shares_memory(features.data if sp.issparse(features) else features, X.data)


def test_export_without_pickle_gives_the_same_bits(module: Any) -> None:
    method = small(module).fit(TRAIN)
    arrays = stored_and_read(method.to_arrays())
    again = type(method).from_arrays(arrays)
    assert again.get_params() == method.get_params()
    assert dense(again.transform(TEST)).tobytes() == dense(method.transform(TEST)).tobytes()
    assert list(again.get_feature_names_out()) == list(method.get_feature_names_out())
    assert arrays.keys() == again.to_arrays().keys()


def test_every_choice_of_the_search_space_exports(module: Any) -> None:
    for name, distribution in module.SEARCH_SPACE.items():
        for choice in getattr(distribution, "choices", ()):
            method = small(module).set_params(**{name: choice}).fit(TRAIN)
            again = type(method).from_arrays(stored_and_read(method.to_arrays()))
            assert dense(again.transform(TEST)).tobytes() == dense(method.transform(TEST)).tobytes()


def test_empty_documents_and_unseen_terms_are_finite(module: Any) -> None:
    train, test = TRAIN.toarray(), TEST.toarray()
    train[3], test[0] = 0, 0
    train[:, :4] = 0
    test[1], test[1, :4] = 0, 2  # a document of nothing but unseen terms
    method = small(module).fit(sp.csr_matrix(train))
    assert np.isfinite(dense(method.transform(sp.csr_matrix(train)))).all()
    assert np.isfinite(dense(method.transform(sp.csr_matrix(test)))).all()
    if not hasattr(method, "biases_"):  # a bias speaks in every document
        assert not np.any(dense(method.transform(sp.csr_matrix(test)))[0])


@pytest.mark.parametrize(
    "counts", [np.zeros((4, 3)), np.ones((4, 3)), np.ones((5, 1)), np.diag([1, 2, 3])], ids=str
)
def test_degenerate_collections_are_finite(module: Any, counts: np.ndarray) -> None:
    X = sp.csr_matrix(counts.astype(np.int32))
    method = module.build().fit(X)
    features = method.transform(X)
    assert np.isfinite(dense(features)).all()
    assert features.shape == (len(counts), len(method.get_feature_names_out()))
    assert features.shape[1] >= 1


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_impossible_counts_are_refused(module: Any, value: float) -> None:
    X = TRAIN.astype(np.float64)
    X.data[7] = value
    with pytest.raises(ValueError, match=r"negative: got -1|NaN|infinity"):
        small(module).fit(X)


def test_another_number_of_terms_is_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="41 features"):
        small(module).fit(TRAIN).transform(word_counts(3, n_terms=41))
