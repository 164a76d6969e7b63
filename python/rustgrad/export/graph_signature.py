"""`torch.export.graph_signature`: what the inputs and outputs of an exported graph are."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind",
    "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that is computed from sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth that is computed from sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of C++, of which there are none here."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is the same in each call."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = (
    TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument | ConstantArgument | CustomObjArgument | TokenArgument
)  # fmt: skip


class InputKind(Enum):
    """What an input is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """An input: its kind, its node, and the path of a parameter, buffer or constant.

    Raises:
        AssertionError: a buffer that does not say whether it is persistent.
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output: its kind, its node, and the path of what is written."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _user_value(arg: ArgumentSpec) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> list[InputSpec]:
        return [s for s in self.input_specs if s.kind == kind]

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self.output_specs if s.kind == kind}

    @property
    def parameters(self) -> Collection[str]:
        """The paths of the parameters."""
        return tuple(str(s.target) for s in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self) -> Collection[str]:
        """The paths of the buffers."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        """The paths of buffers that are not in the state dict."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER) if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """The names of the constants."""
        return tuple(str(s.target) for s in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        """The names of objects of C++."""
        return tuple(str(s.target) for s in self._inputs(InputKind.CUSTOM_OBJ))

    @property
    def user_inputs(self) -> Collection[Any]:
        """The nodes of the arguments, or values that are the same in each call."""
        return tuple(_user_value(s.arg) for s in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> Collection[Any]:
        """The nodes of the results, or values that are the same in each call."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_user_value(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """{node: path} of the parameters."""
        return {s.arg.name: str(s.target) for s in self._inputs(InputKind.PARAMETER)}

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """{node: path} of the buffers."""
        return {s.arg.name: str(s.target) for s in self._inputs(InputKind.BUFFER)}

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """{node: name} of the constants."""
        return {s.arg.name: str(s.target) for s in self._inputs(InputKind.CONSTANT_TENSOR)}

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """{node: name} of objects of C++."""
        return {s.arg.name: str(s.target) for s in self._inputs(InputKind.CUSTOM_OBJ)}

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """{node: path} of buffers that get new values."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """{node: path} of parameters that get new values."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """{node: input} of arguments that get new values."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Which outputs are gradients; None without a loss."""
        losses = [s.arg.name for s in self.output_specs if s.kind == OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            self._outputs(OutputKind.GRADIENT_TO_PARAMETER), self._outputs(OutputKind.GRADIENT_TO_USER_INPUT), losses[0]
        )

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """None: assertions are ops here."""
        return None

    @property
    def input_tokens(self) -> Collection[str]:
        """The nodes of tokens among the inputs."""
        return tuple(s.arg.name for s in self._inputs(InputKind.TOKEN))

    @property
    def output_tokens(self) -> Collection[str]:
        """The nodes of tokens among the outputs."""
        return tuple(s.arg.name for s in self.output_specs if s.kind == OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Renames a node.

        Raises:
            AssertionError: a name that is no string.
        """
        if not isinstance(old, str) or not isinstance(new, str):
            raise AssertionError(f"expected names, got {old!r} and {new!r}")
        for spec in [*self.output_specs, *self.input_specs]:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Any:
        """A function for hooks of graphs that renames the node here."""

        def renamed(old: Any, new: str, user: Any) -> None:
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new)

        return renamed

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
