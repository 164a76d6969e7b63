"""`torch.export.exported_program`: a program as a graph of ATen ops, with the state that it reads."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .._base import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._values import keep_name
from .graph_signature import ArgumentSpec, ExportGraphSignature

__all__ = ["CallSpec", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclasses.dataclass
class CallSpec:
    """The containers of the arguments, and those of the results."""

    in_spec: Any
    out_spec: Any


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module was called."""

    inputs: list[ArgumentSpec]
    outputs: list[ArgumentSpec]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Names another node where one is named."""
        for arg in [*self.inputs, *self.outputs]:
            if arg.name == original_node.name:
                arg.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module that the program calls, with how it was called where that is kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


class Verifier:
    """Checks graphs of ops without writes: `check(program)` raises `SpecViolationError`."""

    dialect = "ATEN"

    def check(self, program: Any) -> None:
        """SpecViolationError: the graph has nodes that a program has not."""
        from ._verify import check

        check(program, self.dialect)


class TrainingIRVerifier(Verifier):
    """Checks graphs of all ops."""

    dialect = "TRAINING"


class ExportedProgram:
    """A program as a graph of ATen ops. Made by `torch.export.export` and `torch.export.load`; `module()` makes it callable.

    Attributes:
        graph_module (GraphModule): its graph, whose inputs are parameters, buffers, constants and arguments.
        graph_signature (ExportGraphSignature): what they are.
        state_dict (dict): parameters and buffers by path.
        constants (dict): buffers that are not in the state dict, and other tensors.
        range_constraints (dict): the bounds of sizes that vary.
        example_inputs (tuple): (args, kwargs) with which it was exported.
    """

    def __init__(
        self,
        root: Module | dict[str, Any],
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: list[type[Verifier]] | None = None,
    ) -> None:
        graph._codegen = type(graph._codegen)() if type(graph._codegen).__name__ != "CodeGen" else graph._codegen
        self._graph_module = GraphModule(root, graph)
        if isinstance(root, Module):
            self._graph_module.meta.update(getattr(root, "meta", {}))
        self._graph_signature, self._state_dict = graph_signature, state_dict
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(inputs, graph_signature.input_specs):
            # A copy of a graph gives other names to what is called like something of Python's.
            if node.name != spec.arg.name:
                keep_name(node, spec.arg.name)
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, dict(constants or {})
        self._verifiers = verifiers or [TrainingIRVerifier]
        self._guards: list[Any] = []
        self._leaves: list[Any] | None = None
        self._training = True

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs of the graph are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers by path."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Tensors beside the state dict."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """Tensors beside the state dict."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """The bounds of sizes that vary."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules that the program calls."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """(args, kwargs) with which it was exported."""
        return self._example_inputs

    @property
    def call_spec(self) -> CallSpec:
        """The containers of arguments and results."""
        signature = self._module_call_graph[0].signature
        if signature is None:
            raise AssertionError("the program's first call has no signature")
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def verifier(self) -> Any:
        """The class that checks the graph."""
        return self._verifiers[0]

    @property
    def verifiers(self) -> list[type[Verifier]]:
        """The classes that check the graph."""
        return self._verifiers

    @property
    def dialect(self) -> str:
        """ "TRAINING", or "ATEN" after `run_decompositions`."""
        return self._verifiers[0].dialect

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """RuntimeError: `module()` is called."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """The program as a module with its parameters and buffers, which are shared.

        Args:
            check_guards (bool): check the sizes of arguments.

        Returns:
            GraphModule: called like the exported module. It checks the containers of its arguments (ValueError) and their sizes
            (AssertionError).
        """
        from ._module import module_of

        return module_of(self, check_guards)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for _, p in self.named_parameters():
            yield p

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, b in self.named_buffers():
            yield b

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths."""
        apart = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in apart else self.state_dict)[name]

    def run_decompositions(
        self, decomp_table: dict[Any, Callable[..., Any]] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program without writes in place: what buffers and arguments become are results of its graph.

        Args:
            decomp_table (dict, optional): {op: function} that is called in the place of the op; with None, that of
                `default_decompositions`, which takes composite ops apart.
        """
        from ._functional import decomposed

        return decomposed(self, default_decompositions() if decomp_table is None else decomp_table)

    def validate(self) -> None:
        """Checks the graph."""
        for verifier in self._verifiers:
            verifier().check(self)

    def _validate(self) -> None:
        self.validate()

    def __str__(self) -> str:
        from ._print import program_text

        return program_text(self)

    __repr__ = __str__

    def __deepcopy__(self, memo: dict[int, Any]) -> ExportedProgram:
        made = ExportedProgram(
            self._graph_module,
            copy.deepcopy(self.graph),
            copy.deepcopy(self._graph_signature, memo),
            copy.deepcopy(self._state_dict, memo),
            dict(self._range_constraints),
            copy.deepcopy(self._module_call_graph, memo),
            self._example_inputs,
            copy.deepcopy(self._constants, memo),
            verifiers=self._verifiers,
        )
        made._guards, made._leaves, made._training = self._guards, self._leaves, self._training
        return made

    def _update(self, graph_module: GraphModule, graph_signature: Any, **changes: Any) -> ExportedProgram:
        """The program with another graph."""
        made = ExportedProgram(
            graph_module,
            graph_module.graph,
            graph_signature,
            changes.get("state_dict", self._state_dict),
            changes.get("range_constraints", dict(self._range_constraints)),
            changes.get("module_call_graph", self._module_call_graph),
            self._example_inputs,
            changes.get("constants", self._constants),
            verifiers=changes.get("verifiers", self._verifiers),
        )
        made._guards, made._leaves, made._training = self._guards, self._leaves, self._training
        return made


def default_decompositions() -> dict[Any, Callable[..., Any]]:
    """The functions that `run_decompositions` calls in the place of composite ops."""
    from ._decompositions import CustomDecompTable

    return CustomDecompTable()
