"""`ONNXProgram`: an exported model, which can be saved and, with onnxruntime, run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _C
from .._base import Tensor, tensor
from ._graph import TYPES
from .errors import OnnxExporterError

__all__ = ["ONNXProgram", "elements", "require_onnx"]

# A file of protocol buffers cannot be larger.
_LARGEST = (1 << 31) - (1 << 20)


def require_onnx() -> Any:
    """The module `onnx`. OnnxExporterError where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise OnnxExporterError(
            "onnx.export: the package 'onnx' is not installed; it writes the files. Hint: pip install onnx"
        ) from error
    return onnx


def elements(t: Tensor) -> bytes:
    """The elements of a tensor as ONNX stores them."""
    t = t.detach().cpu().contiguous().reshape(-1)
    if t.numel() == 0:
        return b""
    return bytes(t.view(_C.uint8).numpy().tobytes())


class ONNXProgram:
    """An exported model.

    Attributes:
        model (onnx.ModelProto): the model; `model_proto` is the same.
    """

    def __init__(self, model: Any, inputs: list[Tensor], flatten: Callable[..., list[Tensor]]) -> None:
        self.model = model
        self.exported_program = None
        self._example, self._flatten = inputs, flatten
        self._session: Any = None

    @property
    def model_proto(self) -> Any:
        """The model as `onnx.ModelProto`."""
        return self.model

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a file, or to an object with `write`.

        Args:
            destination (str): the path.
            include_initializers (bool): write the parameters.
            keep_initializers_as_inputs (bool): make them inputs too, so that a run may give others.
            external_data (bool, optional): write them to a file beside it, `destination` with ".data" after it; that is also
                done by itself for a model of two gigabytes or more.

        Raises:
            TypeError: external data beside something that is not a path.
        """
        onnx = require_onnx()
        model = self.model
        if keep_initializers_as_inputs or not include_initializers:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
        graph = model.graph
        if keep_initializers_as_inputs:
            known = {i.name for i in graph.input}
            for t in graph.initializer:
                if t.name not in known:
                    graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        if not include_initializers:
            del graph.initializer[:]
        large = sum(len(t.raw_data) for t in graph.initializer) > _LARGEST
        if hasattr(destination, "write"):
            if external_data or large:
                raise TypeError("save: external data needs a path as destination, got a file object")
            destination.write(model.SerializeToString())
            return
        path = os.fspath(destination)
        if external_data or large:
            if model is self.model:
                model = onnx.ModelProto()
                model.CopyFrom(self.model)
            place = os.path.basename(path) + ".data"
            beside = os.path.join(os.path.dirname(path), place)
            if os.path.exists(beside):
                os.remove(beside)
            onnx.save_model(
                model,
                path,
                save_as_external_data=True,
                all_tensors_to_one_file=True,
                location=place,
                size_threshold=1024,
            )
            return
        with open(path, "wb") as file:
            file.write(model.SerializeToString())

    def initialize_inference_session(self, initializer: Callable[[bytes], Any] | None = None) -> None:
        """Makes the session of onnxruntime that calls use; `initializer` makes it of the bytes of the model."""
        if initializer is None:
            try:
                import onnxruntime
            except ImportError as error:
                raise OnnxExporterError(
                    "onnx: running an exported model needs the package 'onnxruntime'. Hint: pip install onnxruntime"
                ) from error
            self._session = onnxruntime.InferenceSession(
                self.model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        else:
            self._session = initializer(self.model.SerializeToString())

    def release(self) -> None:
        """Drops the session."""
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Runs the model by onnxruntime with the arguments that the exported module takes; the results as a list."""
        if self._session is None:
            self.initialize_inference_session()
        given = self._flatten(args, kwargs)
        names = [i.name for i in self._session.get_inputs()]
        feed = {name: a for name, a in self._feed(given).items() if name in names}
        return [_tensor(a) for a in self._session.run(None, feed)]

    def call_reference(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Runs the model by the interpreter of the package `onnx`, which is slow."""
        require_onnx()
        from onnx.reference import ReferenceEvaluator

        return [_tensor(a) for a in ReferenceEvaluator(self.model).run(None, self._feed(self._flatten(args, kwargs)))]

    def compute_values(self, value_names: Sequence[str], args: Any = (), kwargs: Any = None) -> list[Tensor]:
        """The values of these names inside of the graph, by onnxruntime, for arguments of the module."""
        onnx = require_onnx()
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in value_names)
        return ONNXProgram(model, self._example, self._flatten)(*args, **(kwargs or {}))

    def _feed(self, given: list[Tensor]) -> dict[str, Any]:
        return {i.name: t.detach().cpu().contiguous().numpy() for i, t in zip(self.model.graph.input, given)}

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replaces initializers by the tensors of these names."""
        for t in self.model.graph.initializer:
            if t.name in state_dict:
                new = state_dict[t.name]
                if list(new.shape) != list(t.dims) or TYPES[new.dtype] != t.data_type:
                    raise ValueError(f"apply_weights: '{t.name}' has another shape or dtype than the exported tensor")
                t.raw_data = elements(new)
        self._session = None

    def optimize(self) -> None:
        """No effect: constants are folded when the model is exported."""

    def __repr__(self) -> str:
        graph = self.model.graph
        names = lambda values: ", ".join(v.name for v in values)  # noqa: E731
        return f"ONNXProgram({names(graph.input)} -> {names(graph.output)}; {len(graph.node)} nodes)"


def _tensor(array: Any) -> Tensor:
    made: Tensor = tensor(array) if array.shape == () else _C.from_numpy(array)
    return made
