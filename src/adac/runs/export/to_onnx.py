"""A policy as an ONNX graph, `obs` [batch, o] → `action` [batch, d]."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adac.core.activations import GELU, Activation
from adac.core.plain import PlainPolicy
from adac.errors import missing_extra
from adac.runs.export.facts import Facts, write

OPSET, IR_VERSION = 17, 8  # of 2022, so that runtimes on robots that are not updated read it


def write_onnx(policy: PlainPolicy, facts: Facts, path: Path) -> None:
    try:
        import onnx
    except ImportError:
        raise missing_extra("--onnx", "export") from None
    model = onnx.helper.make_model(
        _Graph(onnx).of(policy),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="adac",
        doc_string="\n".join(facts.lines(policy)),
    )
    properties = {f"adac.{name}": str(value) for name, value in facts.to_json().items()}
    onnx.helper.set_model_props(model, properties)
    onnx.checker.check_model(model, full_check=True)
    write(path, model.SerializeToString())


class _Graph:
    """Nodes in a row, each reading the one before it, and perhaps one `other`."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.last = "obs"

    def of(self, policy: PlainPolicy) -> Any:
        if policy.normalises:
            self._add("Sub", policy.mean)
            self._add("Div", policy.std)
            clip = np.float32(policy.clip)
            self._add("Clip", np.asarray(-clip), np.asarray(clip))
        for number, layer in enumerate(policy.layers):
            if number:
                self._activate(policy.activation)
            self._add("Gemm", layer.weight, layer.bias)
        self._add("Tanh")
        self._add("Add", np.ones(1, np.float32))
        self._add("Mul", policy.half)
        self._add("Add", policy.low)
        self._add("Max", policy.low)
        self._add("Min", policy.high)
        self.nodes[-1].output[0] = "action"
        ends = (self._port("obs", policy.obs_dim), self._port("action", policy.action_dim))
        return self.onnx.helper.make_graph(
            self.nodes, "policy", [ends[0]], [ends[1]], self.constants
        )

    def _activate(self, activation: Activation) -> None:
        before = self.last
        if activation == "gelu":  # x · σ(x · (a + b x²))
            self._add("Mul", other=before)
            self._add("Mul", np.array([GELU[1]], np.float32))
            self._add("Add", np.array([GELU[0]], np.float32))
            self._add("Mul", other=before)
        if activation in ("silu", "gelu"):
            self._add("Sigmoid")
            self._add("Mul", other=before)
        else:
            self._add(activation.capitalize())

    def _add(self, kind: str, *constants: NDArray[np.float32], other: str | None = None) -> None:
        name = f"{kind.lower()}{len(self.nodes)}"
        inputs = [self.last, *([] if other is None else [other])]
        for number, array in enumerate(constants):
            inputs.append(f"{name}.{number}")
            self.constants.append(self.onnx.numpy_helper.from_array(array, inputs[-1]))
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name=name))
        self.last = name

    def _port(self, name: str, size: int) -> Any:
        number = self.onnx.TensorProto.FLOAT
        return self.onnx.helper.make_tensor_value_info(name, number, ["batch", size])
