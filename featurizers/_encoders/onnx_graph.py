"""A BERT as an ONNX graph, written from its weights, and any ONNX file of a sentence model as a function.

Source: as `_encoders.bert`; operators of ONNX opset 20 (LayerNormalization, Gelu).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from textbench.featurizers._encoders.places import NoModel

OPSET, IR = 20, 9
FEEDS = ("input_ids", "attention_mask", "token_type_ids")


def written(weights: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> bytes:
    """Return the graph of one text: input_ids (1, n_pieces) to last_hidden_state (1, n_pieces, hidden_size).

    The three projections of attention are one product, and its scale is in the query's weights.
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    constants: list[Any] = []
    hidden, n_heads = config["hidden_size"], config["num_attention_heads"]

    def constant(name: str, array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(kind: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> Any:
        outputs = [f"{kind}{len(nodes)}_{i}" for i in range(n_outputs)]
        nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs[0] if n_outputs == 1 else outputs

    def normalized(x: str, name: str) -> str:
        scale, shift = (constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return str(node("LayerNormalization", x, scale, shift, axis=-1, epsilon=config["layer_norm_eps"]))

    def product(x: str, name: str, matrix: np.ndarray, bias: np.ndarray) -> str:
        multiplied = node("MatMul", x, constant(f"{name}.weight", matrix.T))
        return str(node("Add", multiplied, constant(f"{name}.bias", bias)))

    def dense(x: str, name: str) -> str:
        return product(x, name, weights[f"{name}.weight"], weights[f"{name}.bias"])

    places = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    words = node("Gather", constant("words", weights["embeddings.word_embeddings.weight"]), "input_ids")
    length = node("Shape", "input_ids", start=1, end=2)
    zero = constant("zero", np.array([0], dtype=np.int64))
    positions = node("Slice", constant("places", places), zero, length, zero)
    x = normalized(node("Add", words, positions), "embeddings.LayerNorm")
    in_heads = constant("in_heads", np.array([0, 0, n_heads, hidden // n_heads], dtype=np.int64))
    joined = constant("joined", np.array([0, 0, hidden], dtype=np.int64))
    scale = np.float32(1 / np.sqrt(hidden // n_heads))
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        own = [
            tuple(weights[f"{layer}.attention.self.{name}.{part}"] for part in ("weight", "bias"))
            for name in ("query", "key", "value")
        ]
        own[0] = (own[0][0] * scale, own[0][1] * scale)
        three = product(
            x, f"{layer}.three", np.concatenate([w for w, _ in own]), np.concatenate([b for _, b in own])
        )
        parts = node("Split", three, n_outputs=3, axis=-1, num_outputs=3)
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])  # keys are transposed
        query, key, value = (
            node("Transpose", node("Reshape", part, in_heads), perm=order)
            for part, order in zip(parts, orders, strict=True)
        )
        shares = node("Softmax", node("MatMul", query, key), axis=-1)
        mixed = node("Reshape", node("Transpose", node("MatMul", shares, value), perm=[0, 2, 1, 3]), joined)
        x = normalized(
            node("Add", x, dense(mixed, f"{layer}.attention.output.dense")),
            f"{layer}.attention.output.LayerNorm",
        )
        inner = node("Gelu", dense(x, f"{layer}.intermediate.dense"))
        x = normalized(node("Add", x, dense(inner, f"{layer}.output.dense")), f"{layer}.output.LayerNorm")
    nodes[-1].output[0] = "last_hidden_state"
    entrance = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "pieces"])
    end = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, "pieces", hidden])
    graph = helper.make_graph(nodes, "bert", [entrance], [end], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    return bytes(model.SerializeToString())


def session(model: "bytes | Path", hidden_size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives of ids, ints (n_pieces,), the last layer (n_pieces, hidden_size), or one vector (hidden_size,).

    A text at a time on one thread: the bits of a text depend on nothing else. Raises NoModel where no output is one of
    these, with the names, types and shapes that there are.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = str(model) if isinstance(model, Path) else model
    run = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    feeds = [one.name for one in run.get_inputs()]
    output = _output(run.get_outputs(), hidden_size)
    if unknown := set(feeds) - set(FEEDS):
        raise NoModel(f"the ONNX file asks for {', '.join(sorted(unknown))}; known are {', '.join(FEEDS)}")

    def forward(ids: np.ndarray) -> np.ndarray:
        given = {
            "input_ids": ids[None].astype(np.int64),
            "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
            "token_type_ids": np.zeros((1, len(ids)), dtype=np.int64),
        }
        found = run.run([output], {name: given[name] for name in feeds})[0]
        return np.asarray(found[0], dtype=np.float32)

    return forward


def _output(outputs: list[Any], hidden_size: int) -> str:
    """Return the output to read: the one float of three axes, else `sentence_embedding`, else one vector a text."""
    floats = [one for one in outputs if "float" in one.type]
    named = [one for one in floats if one.name == "sentence_embedding"]
    layers = [one for one in floats if len(one.shape) == 3]
    rows = [one for one in floats if len(one.shape) == 2 and one.shape[1] == hidden_size]
    for found in (layers, named, rows):
        if len(found) == 1:
            return str(found[0].name)
    said = "; ".join(f"{one.name} {one.type} {one.shape}" for one in outputs)
    raise NoModel(f"the ONNX file must have one output with vectors of {hidden_size} numbers, got {said}")
