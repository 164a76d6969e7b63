"""The life of a compiled function: calls are first watched, then replaced by plans.

The first call with arguments of one form runs as it is, so that what is created lazily exists. The next two are
recorded: they run as they are too, under a recorder that sees every op. If both recorded the same, and the audit of the
function's code found nothing that a plan would skip, the plan runs from then on, whenever its guards hold.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._formats import strided
from . import _tail  # noqa: F401  # asked while a call is watched, which sees an import
from ._audit import HOME, Audit, Unsafe
from ._calls import Calls, can_watch, uncollected

PLANS = 16
# Plans of one form that may be made one after another because a guard misses.
RECAPTURES = 8
# Watched calls of one form in the middle of which handlers of signals may run.
INTERRUPTIONS = 8
# Forms of arguments that are remembered.
FORMS = 256


class TorchDynamoException(RuntimeError):
    """The base class of the compiler's errors."""


class Unsupported(TorchDynamoException):
    """A function compiled with `fullgraph=True` cannot be replaced by a plan, or is not one graph."""


class _Thread(threading.local):
    # How many settings of threads may keep a plan from running: where it is zero, a call need not look its own up.
    special = 0
    lock = threading.Lock()

    def __init__(self) -> None:
        self.depth = 0  # compiled functions that this thread is in
        self.recording = False
        self._disabled = 0
        self._stance = "default"

    @property
    def disabled(self) -> int:
        return self._disabled

    @disabled.setter
    def disabled(self, count: int) -> None:
        with _Thread.lock:
            _Thread.special += (count != 0) - (self._disabled != 0)
        self._disabled = count

    @property
    def stance(self) -> str:
        return self._stance

    @stance.setter
    def stance(self, stance: str) -> None:
        with _Thread.lock:
            _Thread.special += (stance != "default") - (self._stance != "default")
        self._stance = stance


settings = _Thread  # the class alone, which all threads share
here = _Thread()


def setting() -> str:
    """What `RUSTGRAD_COMPILE` asks for: "verify", "eager", "nofuse" or nothing."""
    return os.environ.get("RUSTGRAD_COMPILE", "")


def _form(value):
    """What the arguments look like, as a key; objects by identity."""
    if isinstance(value, Tensor):
        if value.layout is not strided or value.is_nested:
            return (type(value), id(value))
        grad = value.is_leaf and value.grad is not None
        return (value.dtype, value.shape, value.stride(), str(value.device), value.requires_grad, value.is_leaf, grad)
    t = type(value)
    if t in (tuple, list):
        return (t, *map(_form, value))
    if t is dict:
        return (t, *((_form(k), _form(v)) for k, v in value.items()))
    return (t, repr(value)) if t in (int, float, complex, bool, str, bytes, type(None)) else (t, id(value))


def _numbers(args, kwargs):
    """The places of arguments that a plan may read anew in each call: floats and ints of 64 bits."""
    every = (*enumerate(args), *kwargs.items())
    return [place for place, v in every if type(v) is float or type(v) is int and -(1 << 63) <= v < 1 << 63]


def _aliases(tensors):
    """For each tensor, the first one that is the same, and the first one on its memory."""
    if len(tensors) < 2:
        return ()
    same, near = [id(t) for t in tensors], [_C._storage_key(t) for t in tensors]
    return tuple((same.index(a), near.index(b)) for a, b in zip(same, near, strict=True))


class _Progress:
    """How far the calls of one form have been watched."""

    def __init__(self) -> None:
        self.calls = 0
        # What a call has recorded, by what it asked of its numbers and by what it read: the next one that was told the
        # same and has read the same has to agree.
        self.first: dict[tuple, str] = {}
        self.differed = 0
        self.plans = 0
        self.interrupted = 0
        self.reason: str | None = None


class Watched:
    """A function with its plans."""

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool, most: int, on: bool, passes: list[str] | None
    ) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.most = most
        self.on = on
        self.passes = [p for p in _C._compile_passes() if p != "fuse"] if setting() == "nofuse" else passes
        self.plans: list[Any] = []
        self.forms: dict[Any, _Progress] = {}
        # Numbers among the arguments that are guarded by their values, by the form of a call.
        self.fixed: dict[Any, set[int | str]] = {}
        self.road = "none"
        self.warned = False
        self.reasons: list[str] = []
        self.missed: list[str] = []
        self.verify = setting() == "verify"
        if not on or setting() == "eager":
            self.on = False
        _all.add(self)

    def reset(self) -> None:
        """Forgets the plans, and what is known of the calls."""
        self.plans.clear()
        self.forms.clear()
        self.fixed.clear()
        self.reasons.clear()
        self.missed.clear()
        self.road = "none"

    def call(self, args: tuple, kwargs: dict) -> Any:
        """A call for which no plan has run."""
        if not self.on or here.recording or here.disabled or here.stance == "force_eager" or _C._is_traced():
            return self.eager(args, kwargs)
        if _C._is_torch_function_mode_enabled():
            return self.eager(args, kwargs)
        if here.stance in ("fail_on_recompile", "eager_on_recompile") and self.plans:
            if here.stance == "fail_on_recompile":
                raise RuntimeError(
                    f"compile: no plan fits this call, and the stance is fail_on_recompile: {self.why(args, kwargs)}"
                )
            self.road = "eager"
            return self.function(*args, **kwargs)
        form, key = self.key(args, kwargs)
        progress = self.forms.get(key)
        if progress is None:
            for known in (self.forms, self.fixed):
                if len(known) >= FORMS:
                    known.pop(next(iter(known)))
            progress = self.forms[key] = _Progress()
        if progress.reason is not None:
            return self.eager(args, kwargs)
        if progress.plans and not progress.calls:
            self.missed.append(self.why(args, kwargs))
            del self.missed[:-16]
            if progress.plans > RECAPTURES:
                return self.give_up(progress, f"guards keep missing: {self.missed[-1]}", args, kwargs)
            progress.calls = 1
        if progress.calls == 0:
            if self.fullgraph:
                try:
                    Audit(self.function, args, kwargs, True)
                except Unsafe as problem:
                    return self.give_up(progress, str(problem), args, kwargs)
            result = self.eager(args, kwargs)
            progress.calls = 1
            return result
        result = self.record(progress, form, args, kwargs)
        _, now = self.key(args, kwargs)
        if now != key:
            # A number has turned out to be fixed.
            self.forms[now] = self.forms.pop(key, progress)
        return result

    def key(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """The form of a call without its numbers, and with those that are fixed."""
        given = {**dict(enumerate(args)), **kwargs}
        numbers = {place: given[place] for place in _numbers(args, kwargs)}
        positional = [type(numbers[i]) if i in numbers else v for i, v in enumerate(args)]
        named = {name: type(numbers[name]) if name in numbers else v for name, v in kwargs.items()}
        aliases = _aliases(_C._compile_inputs(args, kwargs))
        form = (_C.is_grad_enabled(), _form(positional), _form(named), aliases)
        fixed = self.fixed.get(form, ())
        return form, (form, *((place, repr(v)) for place, v in numbers.items() if place in fixed))

    def eager(self, args: tuple, kwargs: dict) -> Any:
        """The function itself."""
        self.road = "eager"
        here.depth += 1
        try:
            return self.function(*args, **kwargs)
        finally:
            here.depth -= 1

    def why(self, args: tuple, kwargs: dict) -> str:
        """Which guard of the newest plan misses."""
        return (self.plans[-1].missed(args, kwargs) or "a step failed") if self.plans else "there is no plan"

    def give_up(self, progress: _Progress, reason: str, args: tuple, kwargs: dict) -> Any:
        """From now on calls of this form run as they are; says so once."""
        self.refuse(progress, reason)
        return self.eager(args, kwargs)

    def refuse(self, progress: _Progress, reason: str) -> None:
        """Notes why calls of this form are not replaced: see `say`."""
        progress.reason = reason
        self.say(reason)

    def say(self, reason: str) -> None:
        """Says why the function runs as it is: by an error where the caller wants one, else by one warning."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        text = f"compile: {name} runs eagerly: {reason}"
        known = reason in self.reasons
        if not known:
            self.reasons.append(reason)
        if self.fullgraph:
            raise Unsupported(text)
        if not known:
            _warn(text)

    def record(self, progress: _Progress, form: Any, args: tuple, kwargs: dict) -> Any:
        """A call under the recorder."""
        if not can_watch():
            return self.profiled(args, kwargs)
        try:
            before = Audit(self.function, args, kwargs, True)
        except Unsafe as problem:
            return self.give_up(progress, str(problem), args, kwargs)
        self.road = "watched"
        numbers = _numbers(args, kwargs)
        asks = tuple((id(t), t.requires_grad, t.is_leaf) for t in _outside(before, args, kwargs))
        result, recording, calls = recorded_call(self.function, before, args, kwargs, numbers)
        if calls.interrupted:
            del recording
            progress.interrupted += 1
            if progress.interrupted > INTERRUPTIONS:
                self.refuse(progress, "handlers of signals run in the middle of its calls")
            return result
        plan = self.planned(before, calls, recording, result, args, kwargs, numbers)
        if isinstance(plan, str):
            del recording
            self.refuse(progress, plan)
            return result
        made, signature = plan
        found, asked = made.recorded(), tuple(made.asked())
        if made.fixed():
            self.fixed.setdefault(form, set()).update(made.fixed())
        known, key = any(other == asked for other, *_ in progress.first), (asked, asks, tuple(signature))
        first = progress.first.pop(key, None)
        if first == found:
            progress.calls = 0
            progress.plans += 1
            self.plans.append(made)
            del self.plans[: -self.most]
            # A watched call holds all its tensors; a plan needs less.
            _C._empty_cache()
            return result
        progress.first[key] = found
        progress.differed += known
        if progress.differed > 2:
            self.refuse(progress, "two calls of it computed different things")
        return result

    def profiled(self, args: tuple, kwargs: dict) -> Any:
        """A call while a profiler is on that the recorder could not put back; says so once."""
        if not self.warned:
            self.warned = True
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            _warn(
                f"compile: {name} runs eagerly while a profiler is on (cProfile). Hint: profile it after its third call."
            )
        return self.eager(args, kwargs)

    def planned(
        self, before: Audit, calls: Calls, recording: Any, result: Any, args: tuple, kwargs: dict, numbers: list
    ) -> Any:
        """The plan and what its guards say, or why there is none."""
        try:
            after, without = audited(self.function, before, calls, result, args, kwargs)
        except Unsafe as problem:
            return str(problem)
        plan = _C._compile_plan(
            recording, result, args, kwargs, after.checks, without.checks, without.groups, self.passes, numbers
        )
        return plan if isinstance(plan, str) else (plan, without.signature())


def recorded_call(
    function: Callable[..., Any], before: Audit, args: tuple, kwargs: dict, numbers: list[int | str] | None = None
) -> tuple[Any, Any, Calls]:
    """A call under the recorder: its result, the recording, and which functions it reached.

    The arguments at the places `numbers` may be others in each call, as may values that it reads of tensors and returns;
    without a list neither may.
    """
    inputs, outside = _C._compile_inputs(args, kwargs), _outside(before, args, kwargs)
    calls = Calls(before)
    here.depth += 1
    try:
        here.recording = True
        with uncollected, calls:
            result, recording = _C._compile_record(inputs, outside, function, args, kwargs, numbers)
    finally:
        here.recording = False
        here.depth -= 1
    return result, recording, calls


def _outside(audit: Audit, args: tuple, kwargs: dict) -> list[Tensor]:
    """The tensors that a function can reach besides its arguments."""
    given = {id(t) for t in _C._compile_inputs(args, kwargs)}
    return [t for t in audit.tensors.values() if id(t) not in given]


def audited(
    function: Callable[..., Any], before: Audit, calls: Calls, result: Any, args: tuple, kwargs: dict
) -> tuple[Audit, Audit]:
    """The audits after a recorded call, with learning rates guarded and without; Unsafe where a plan would differ."""
    if calls.problem:
        raise Unsafe(calls.problem)
    after = Audit(function, args, kwargs, False)
    without = Audit(function, args, kwargs, True)
    if before.signature() != without.signature():
        raise Unsafe("it changes an object that it reads")
    if _returned(result, after.containers):
        raise Unsafe("it returns a list or dict that it did not make")
    return after, without


def _returned(value, containers):
    if type(value) in (tuple, list):
        return id(value) in containers or any(_returned(v, containers) for v in value)
    if type(value) is dict:
        return id(value) in containers or any(_returned(v, containers) for v in value.values())
    return False


def _warn(text):
    """A warning at the line that called the compiled function, through however many functions of ours."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HOME):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


_all: weakref.WeakSet[Watched] = weakref.WeakSet()


def everything() -> list[Watched]:
    """All compiled functions."""
    return list(_all)
