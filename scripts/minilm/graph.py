"""Write a BERT sentence transformer as an ONNX graph, its weights as int8 or as they are; it reads and runs nothing.

The graph takes the token ids of one text, `[CLS]` and `[SEP]` included, as `token_ids`, int64, shape (n,), and gives
its `vector`, float32, shape (d,), of unit length. One text at a time: no padding is computed, and what a text gives
depends on nothing beside it, which a scale taken over a whole batch would make it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from minilm.bert import EPSILON, Floats, Shape, Tensors, layer

OPSET = 20
IR_VERSION = 9
INPUT, OUTPUT = "token_ids", "vector"
LARGEST = 63
"""Weights of the products keep 7 bits: on processors without VNNI, ONNX Runtime adds pairs of products of uint8 and
int8 in 16 bits, and with 8 bits these overflow (255 · 127 · 2 > 32,767), so that vectors would differ by machine."""
LARGEST_EMBEDDING = 127


def sentence_graph(tensors: Tensors, shape: Shape, *, quantised: bool) -> onnx.ModelProto:
    """Return the whole network with its weights.

    Args:
        tensors: by the names of the safetensors file.
        quantised: int8 weights, one scale for each output, and inputs made uint8 while it runs.
    """
    graph = _Graph(quantised=quantised)
    hidden = graph.embeddings(tensors, shape)
    for number in range(shape.layers):
        hidden = graph.layer(hidden, layer(tensors, number), f"layer.{number}", shape.heads)
    mean = graph.add("ReduceMean", hidden, graph.keep("tokens_axis", np.array([0], np.int64)), keepdims=0)
    graph.nodes.append(helper.make_node("LpNormalization", [mean], [OUTPUT], axis=0, p=2))
    width = tensors["embeddings.word_embeddings.weight"].shape[1]
    body = helper.make_graph(
        graph.nodes,
        "sentence_transformer",
        [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [width])],
        graph.kept,
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


class _Graph:
    """Nodes and weights as they are added."""

    def __init__(self, *, quantised: bool) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.kept: list[onnx.TensorProto] = []
        self._quantised = quantised

    def keep(self, name: str, values: NDArray[Any]) -> str:
        """Keep an array under its name, once."""
        if all(tensor.name != name for tensor in self.kept):
            self.kept.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node and return its output; of several, the name that their numbers are added to."""
        name = f"{kind}.{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}.{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return name

    def embeddings(self, tensors: Tensors, shape: Shape) -> str:
        """Add words and positions."""
        words = tensors["embeddings.word_embeddings.weight"]
        if self._quantised:
            rows, scales = quantised(words, LARGEST_EMBEDDING)
            picked = self.add("Gather", self.keep("words", rows), INPUT)
            scale = self.add("Gather", self.keep("words.scale", scales[:, np.newaxis]), INPUT)
            found = self.add("Mul", self.add("Cast", picked, to=TensorProto.FLOAT), scale)
        else:
            found = self.add("Gather", self.keep("words", words), INPUT)
        positions = tensors["embeddings.position_embeddings.weight"][: shape.tokens]
        positions = positions + tensors["embeddings.token_type_embeddings.weight"][0]
        start = self.keep("start", np.array([0], np.int64))
        places = self.add("Slice", self.keep("positions", positions), start, self.add("Shape", INPUT))
        return self._normalise(self.add("Add", found, places), tensors, "embeddings.LayerNorm", "embeddings")

    def layer(self, hidden: str, part: Tensors, name: str, heads: int) -> str:
        """Add attention and feed-forward network of one layer."""
        attended = self._linear(self._attention(hidden, part, name, heads), part, "attention.output.dense", name)
        attended = self.add("Add", attended, hidden)
        attended = self._normalise(attended, part, "attention.output.LayerNorm", name)
        inner = self.add("Gelu", self._linear(attended, part, "intermediate.dense", name))
        outer = self.add("Add", self._linear(inner, part, "output.dense", name), attended)
        return self._normalise(outer, part, "output.LayerNorm", name)

    def _attention(self, hidden: str, part: Tensors, name: str, heads: int) -> str:
        width = part["attention.self.query.weight"].shape[0]
        self.keep("by_head", np.array([0, heads, width // heads], np.int64))
        self.keep("together", np.array([0, width], np.int64))
        # The query's share of the scale of the products is in its weights.
        share = np.float32((width // heads) ** -0.5)
        fused = {
            f"qkv.{kind}": np.concatenate(
                [
                    part[f"attention.self.query.{kind}"] * share,
                    part[f"attention.self.key.{kind}"],
                    part[f"attention.self.value.{kind}"],
                ]
            )
            for kind in ("weight", "bias")
        }
        whole = self._linear(hidden, fused, "qkv", name)
        parts = self.add("Split", whole, outputs=3, axis=-1, num_outputs=3)
        query, key, value = (
            self.add("Transpose", self.add("Reshape", f"{parts}.{number}", "by_head"), perm=order)
            for number, order in enumerate(([1, 0, 2], [1, 2, 0], [1, 0, 2]))
        )
        shares = self.add("Softmax", self.add("MatMul", query, key), axis=-1)
        context = self.add("Transpose", self.add("MatMul", shares, value), perm=[1, 0, 2])
        return self.add("Reshape", context, "together")

    def _linear(self, rows: str, part: Tensors, name: str, place: str) -> str:
        weight, bias = part[f"{name}.weight"], self.keep(f"{place}.{name}.bias", part[f"{name}.bias"])
        if not self._quantised:
            return self.add("Add", self.add("MatMul", rows, self.keep(f"{place}.{name}.weight", weight.T)), bias)
        table, scales = quantised(weight, LARGEST)
        held = self.keep(f"{place}.{name}.weight", table.T)
        small = self.add("DynamicQuantizeLinear", rows, outputs=3)
        sums = self.add("MatMulInteger", f"{small}.0", held, f"{small}.2")
        scale = self.add("Mul", f"{small}.1", self.keep(f"{place}.{name}.scale", scales))
        return self.add("Add", self.add("Mul", self.add("Cast", sums, to=TensorProto.FLOAT), scale), bias)

    def _normalise(self, rows: str, tensors: Tensors, name: str, place: str) -> str:
        weight = self.keep(f"{place}.{name}.weight", tensors[f"{name}.weight"])
        bias = self.keep(f"{place}.{name}.bias", tensors[f"{name}.bias"])
        return self.add("LayerNormalization", rows, weight, bias, axis=-1, epsilon=EPSILON)


def quantised(rows: Floats, largest: int) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 rows within ±`largest` and the scale of each, float32, shape (n,)."""
    scales = np.abs(rows).max(1) / np.float32(largest)
    scales = np.where(scales > 0, scales, np.float32(1))
    return np.rint(rows / scales[:, np.newaxis]).astype(np.int8), np.asarray(scales, np.float32)
