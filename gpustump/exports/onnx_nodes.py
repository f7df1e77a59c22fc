"""How a graph of ONNX is put together: each call adds a node and returns the name of its result."""

from __future__ import annotations

from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions of ONNX that runtimes since 2022 know (ONNX 1.12, ONNX Runtime 1.12)."""


class Nodes:
    """The nodes and constants of a graph, in order."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """A constant; text in an array of objects."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node with one output."""
        from onnx import helper

        name = output or f"{kind.lower()}_{len(self.nodes)}"
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name
