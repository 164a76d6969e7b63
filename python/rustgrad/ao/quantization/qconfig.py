"""Configurations: which observers see activations and weights."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from ...nn.modules.linear import Identity
from ...nn.modules.module import Module
from . import fake_quantize as _fakes
from . import observer as _observers
from .fake_quantize import FakeQuantize, FakeQuantizeBase, FusedMovingAvgObsFakeQuantize
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    ObserverBase,
    PlaceholderObserver,
    ReuseInputObserver,
    _PartialWrapper,
)

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig",
    "get_default_qconfig_dict",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]

QConfigAny = Any
_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


def _no_instances(**constructors):
    for made in constructors.values():
        if isinstance(made, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to "
                "override arguments to constructor if needed"
            )


class QConfig(namedtuple("QConfig", ["activation", "weight"])):  # noqa: PYI024
    """The constructors of observers of activations and weights.

    Args:
        activation: a class of observers, or `with_args` of one.
        weight: as `activation`.

    Raises:
        ValueError: an observer itself.
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> Any:
        _no_instances(activation=activation, weight=weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):  # noqa: PYI024
    """Deprecated: `QConfig` of dynamic quantisation."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> Any:
        _no_instances(weight=weight)
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(activation=_observers.default_observer, weight=_observers.default_weight_observer)
default_debug_qconfig = QConfig(weight=_observers.default_weight_observer, activation=_observers.default_debug_observer)
default_per_channel_qconfig = QConfig(
    activation=_observers.default_observer, weight=_observers.default_per_channel_weight_observer
)
default_dynamic_qconfig = QConfig(
    activation=_observers.default_dynamic_quant_observer, weight=_observers.default_weight_observer
)
float16_dynamic_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    weight=PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=torch.float16),
    weight=PlaceholderObserver.with_args(dtype=torch.float16),
)
per_channel_dynamic_qconfig = QConfig(
    activation=_observers.default_dynamic_quant_observer, weight=_observers.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    activation=_observers.default_placeholder_observer, weight=_observers.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    activation=_observers.default_placeholder_observer, weight=_observers.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(activation=_fakes.default_fake_quant, weight=_fakes.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(
    activation=_fakes.default_dynamic_fake_quant, weight=_fakes.default_weight_fake_quant
)
default_weight_only_qconfig = QConfig(activation=Identity, weight=_fakes.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=_fakes.default_fake_quant, weight=Identity)
default_qat_qconfig_v2 = QConfig(
    activation=_fakes.default_fused_act_fake_quant, weight=_fakes.default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(activation=_observers.default_reuse_input_observer, weight=NoopObserver)
default_quint8_weight_qconfig = QConfig(activation=HistogramObserver, weight=MinMaxObserver)
_SYMMETRIC = HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12)
_SYMMETRIC_FAKE = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qconfig = QConfig(
    activation=_SYMMETRIC, weight=_observers.weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    activation=_SYMMETRIC, weight=_observers.per_channel_weight_observer_range_neg_127_to_127
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_SYMMETRIC_FAKE, weight=_fakes.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_SYMMETRIC_FAKE, weight=_fakes.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
default_embedding_qat_qconfig = QConfig(
    activation=NoopObserver.with_args(dtype=torch.float32), weight=_fakes.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    activation=NoopObserver.with_args(dtype=torch.float32), weight=_fakes.default_embedding_fake_quant_4bit
)
_default_fp32_placeholder_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=torch.float32),
    weight=PlaceholderObserver.with_args(dtype=torch.float32),
)
_default_quint8_placeholder_qconfig = QConfig(activation=PlaceholderObserver.with_args(dtype=torch.quint8), weight=None)


def _check_backend(backend):
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The configuration of static quantisation for a backend.

    Args:
        backend (str): "x86", "fbgemm", "qnnpack" or "onednn".
        version (int): 0.

    Raises:
        AssertionError: another backend or version.
    """
    _check_backend(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0"
        )
    if backend == "qnnpack":
        return QConfig(
            activation=HistogramObserver.with_args(reduce_range=False), weight=_observers.default_weight_observer
        )
    return QConfig(
        activation=HistogramObserver.with_args(reduce_range=backend != "onednn"),
        weight=_observers.default_per_channel_weight_observer,
    )


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The configuration of training with quantisation for a backend.

    Args:
        backend (str): "x86", "fbgemm", "qnnpack" or "onednn".
        version (int): 1; 0 for observers and rounding that are modules of their own.

    Raises:
        AssertionError: another backend or version.
    """
    _check_backend(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version}in get_default_qat_qconfig is not supported. Version number must be 0 or 1"
        )
    fake = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    options = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    activation = fake.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **options)
    if backend == "qnnpack":
        weight = _fakes.default_fused_wt_fake_quant if version else _fakes.default_weight_fake_quant
    elif version:
        weight = _fakes.default_fused_per_channel_wt_fake_quant
    else:
        weight = _fakes.default_per_channel_weight_fake_quant
    return QConfig(activation=activation, weight=weight)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dictionary."""
    from .qconfig_mapping import get_default_qconfig_mapping

    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dictionary."""
    from .qconfig_mapping import get_default_qat_qconfig_mapping

    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _assert_valid_qconfig(qconfig: Any, mod: Module) -> None:
    """AssertionError: a transposed convolution has a weight observer with scales for each channel."""
    if qconfig is None:
        return
    names = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
    if any(isinstance(mod, getattr(torch.nn, name)) for name in names) and qconfig.weight is not None:
        weight = qconfig.weight()
        if isinstance(weight, (_observers.PerChannelMinMaxObserver, _observers.MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _add_module_to_qconfig_obs_ctr(qconfig: Any, module: Any) -> Any:
    """A configuration whose observers are made on the device of a module."""
    if module is None or qconfig is None or not isinstance(qconfig, QConfig):
        return qconfig

    def where() -> Any:
        devices = {p.device for p in module.parameters()} | {p.device for p in module.buffers()}
        return next(iter(devices)) if len(devices) > 0 else None

    def on_device(made: Any) -> Any:
        if not isinstance(made, _PartialWrapper) or "factory_kwargs" in made.callable_args:
            return made
        return made.with_callable_args(factory_kwargs=lambda: None if where() is None else {"device": where()})

    accepts = (MinMaxObserver, _observers.PerChannelMinMaxObserver, HistogramObserver)

    def chosen(made: Any) -> Any:
        kind = getattr(getattr(made, "p", None), "func", None)
        return on_device(made) if isinstance(kind, type) and issubclass(kind, accepts) else made

    moving = (MovingAverageMinMaxObserver, _observers.MovingAveragePerChannelMinMaxObserver)
    parts = [
        part if getattr(getattr(part, "p", None), "func", None) in moving else chosen(part)
        for part in (qconfig.activation, qconfig.weight)
    ]
    return QConfig(*parts)


def _obs_or_fq_ctr_equals(obs_or_fq1: Any, obs_or_fq2: Any) -> bool:
    """Whether two constructors make the same."""
    if isinstance(obs_or_fq1, _PartialWrapper) and isinstance(obs_or_fq2, _PartialWrapper):
        return _partial_wrapper_equals(obs_or_fq1, obs_or_fq2)
    return obs_or_fq1 == obs_or_fq2


def _partial_wrapper_equals(obs_or_fq1: _PartialWrapper, obs_or_fq2: _PartialWrapper) -> bool:
    keywords = [copy.copy(made.p.keywords) for made in (obs_or_fq1, obs_or_fq2)]
    observers = [kept.pop("observer", None) for kept in keywords]
    same = _obs_or_fq_ctr_equals(*observers) if all(o is not None for o in observers) else observers[0] is observers[1]
    return same and obs_or_fq1.p.func == obs_or_fq2.p.func and obs_or_fq1.p.args == obs_or_fq2.p.args and keywords[0] == keywords[1]  # fmt: skip


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    try:
        return _obs_or_fq_ctr_equals(q1.activation, q2.activation) and _obs_or_fq_ctr_equals(q1.weight, q2.weight)
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig: Any) -> bool:
    """Whether the observer of activations keeps nothing of what it saw before."""

    def forgets(made: Any) -> bool:
        return getattr(made, "averaging_constant", None) == 1

    made = qconfig.activation()
    if isinstance(made, FakeQuantizeBase) and hasattr(made, "activation_post_process"):
        return forgets(made.activation_post_process)
    return forgets(made)


def _is_reuse_input_qconfig(qconfig: Any) -> bool:
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), ReuseInputObserver)
        and isinstance(qconfig.weight(), NoopObserver)
    )


_ObserverOrFakeQuantizeConstructor = _PartialWrapper | type[ObserverBase] | type[FakeQuantizeBase]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
