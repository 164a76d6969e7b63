"""L-BFGS (Liu and Nocedal, 1989) with a line search for the strong Wolfe conditions.

The search brackets a minimum, then narrows the bracket by cubic interpolation (Nocedal and Wright, "Numerical
Optimization", algorithms 3.5 and 3.6, with the safeguards of Schmidt's minFunc).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._base import Tensor, cat, zeros_like
from ..autograd.grad_mode import enable_grad, no_grad
from .adam import as_real
from .optimizer import Optimizer, ParamsT, _with_hooks, check_lr, to_scalar

__all__ = ["LBFGS"]


class _Point(NamedTuple):
    """A place along the direction: how far, the loss, the gradient, the slope along the direction.

    The slope is a tensor of the parameters' dtype: an interpolation in double precision takes other steps than PyTorch's.
    """

    step: Any
    loss: float
    grad: Tensor
    slope: Tensor


def _cubic_minimum(a, b, bounds=None):
    """Where the cubic through two points with their slopes is least; the middle of the bounds where that is nowhere."""
    a, b = (a, b) if a.step <= b.step else (b, a)
    low, high = bounds or (a.step, b.step)
    if a.step != b.step:
        d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
        square = d1**2 - a.slope * b.slope
        if square >= 0:
            d2 = square.sqrt()
            width = b.slope - a.slope + 2 * d2
            if width != 0:
                at = b.step - (b.step - a.step) * ((b.slope + d2 - d1) / width)
                return min(max(at, low), high)
    return (low + high) / 2.0


class _Search:
    """A search for a point that decreases the loss enough (`c1`) where the slope is flat enough (`c2`)."""

    c1, c2 = 1e-4, 0.9

    def __init__(self, evaluate: Callable[[float], Any], start: Any, size: float, tolerance: float, tries: int) -> None:
        self.evaluate, self.start, self.size, self.tolerance = evaluate, start, size, tolerance
        self.tries, self.evaluations = tries, 0

    def at(self, step: float) -> Any:
        self.evaluations += 1
        return self.evaluate(step)

    def too_high(self, point: Any) -> bool:
        return point.loss > self.start.loss + self.c1 * point.step * self.start.slope

    def flat(self, point: Any) -> bool:
        return abs(point.slope) <= -self.c2 * self.start.slope

    def run(self, step: float) -> Any:
        """The point that was found."""
        before, point, tries = self.start, self.at(step), 0
        while tries < self.tries:
            if self.too_high(point) or (tries > 1 and point.loss >= before.loss):
                return self.narrow(before, point, tries)
            if self.flat(point):
                return point
            if point.slope >= 0:
                return self.narrow(before, point, tries)
            bounds = (point.step + 0.01 * (point.step - before.step), point.step * 10)
            before, point = point, self.at(_cubic_minimum(before, point, bounds))
            tries += 1
        return min(self.start, point, key=lambda p: p.loss)

    def narrow(self, a: Any, b: Any, tries: int) -> Any:
        """The best point between two."""
        best, worst = (a, b) if a.loss <= b.loss else (b, a)
        stalled = False
        while tries < self.tries and abs(worst.step - best.step) * self.size >= self.tolerance:
            step, stalled = self.inside(best, worst, stalled)
            point = self.at(step)
            tries += 1
            if self.too_high(point) or point.loss >= best.loss:
                best, worst = (best, point) if best.loss <= point.loss else (point, best)
                continue
            if self.flat(point):
                return point
            if point.slope * (worst.step - best.step) >= 0:
                worst = best
            best = point
        return best

    def inside(self, best: Any, worst: Any, stalled: bool) -> Any:
        """The next step to try; twice in a row it may not be near an end."""
        step = _cubic_minimum(best, worst)
        left, right = sorted((best.step, worst.step))
        margin = 0.1 * (right - left)
        if min(right - step, step - left) >= margin:
            return step, False
        if not stalled and left < step < right:
            return step, True
        return (right - margin if abs(step - right) < abs(step - left) else left + margin), False


class LBFGS(Optimizer):
    """Newton's method with an estimate of the inverse Hessian from the last changes of gradients.

    One group of parameters only; `step(closure)` evaluates the closure several times.

    Args:
        params (iterable): tensors.
        lr (float): the step along the direction, or the first one to try.
        max_iter, max_eval (int): iterations and evaluations in a `step`; by default 5/4 as many evaluations.
        tolerance_grad, tolerance_change (float): when to stop.
        history_size (int): how many changes are remembered.
        line_search_fn (str): None, or "strong_wolfe".
        maximize (bool).

    Raises:
        ValueError: a negative rate, or several groups.
        RuntimeError: (by `step`) another line search is asked for.
    """

    _step_defaults = {"maximize": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _evaluate(self, closure):
        """(what the closure gives, the loss, the gradient as one vector), both negated to maximize."""
        with enable_grad():
            result = closure()
        loss = result.item() if isinstance(result, Tensor) else float(result)
        grads = [zeros_like(p) if p.grad is None else p.grad for p in self._params]
        flat = cat([(as_real(g)[0] if g.is_complex() else g).reshape(-1) for g in grads])
        if self.param_groups[0].get("maximize"):
            return result, -loss, -flat
        return result, loss, flat

    def _move(self, step, direction):
        start = 0
        for p in self._params:
            part = as_real(p)[0] if p.is_complex() else p
            part.add_(direction[start : start + part.numel()].view(part.shape), alpha=step)
            start += part.numel()

    def _try(self, closure, step, direction):
        """The point at a step along the direction; the parameters are put back."""
        before = [p.clone() for p in self._params]
        self._move(step, direction)
        _, loss, grad = self._evaluate(closure)
        for p, value in zip(self._params, before, strict=True):
            p.copy_(value)
        return _Point(step, loss, grad, grad.dot(direction))

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` iterations; `closure` clears the gradients, computes them anew and returns the loss."""
        group = self.param_groups[0]
        if not self._params:
            with enable_grad():
                return closure()
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        result, loss, grad = self._evaluate(closure)
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max() <= group["tolerance_grad"]:
            return result
        lr = to_scalar(group["lr"])
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, group, grad)
            first = state["n_iter"] == 1
            step = min(1.0, 1.0 / grad.abs().sum()) * lr if first else lr
            state.update(d=direction, t=step, prev_flat_grad=grad.clone(), prev_loss=loss)
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            before, used = loss, 0
            if search is not None:
                start = _Point(0.0, loss, grad, slope)
                size = direction.abs().max()
                tries = group["max_eval"] - evaluations
                wolfe = _Search(
                    lambda s, d=direction: self._try(closure, s, d), start, size, group["tolerance_change"], tries
                )
                step, loss, grad, _ = wolfe.run(step)
                used = wolfe.evaluations
                state["t"] = step
                self._move(step, direction)
            else:
                self._move(step, direction)
                if n != group["max_iter"]:
                    _, loss, grad = self._evaluate(closure)
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or grad.abs().max() <= group["tolerance_grad"]
                or (direction * step).abs().max() <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return result

    step = _with_hooks(step)

    @staticmethod
    def _direction(state, group, grad):
        """Minus the gradient times the inverse Hessian as the last changes of gradients tell it (two loops)."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        changes, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        product = change.dot(step)
        if product > 1e-10:
            if len(changes) == group["history_size"]:
                for memory in (changes, steps, weights):
                    memory.pop(0)
            changes.append(change)
            steps.append(step)
            weights.append(1.0 / product)
            state["H_diag"] = product / change.dot(change)
        shares = state.setdefault("al", [None] * group["history_size"])
        direction = -grad
        for i in reversed(range(len(changes))):
            shares[i] = steps[i].dot(direction) * weights[i]
            direction.add_(changes[i], alpha=-shares[i])
        direction.mul_(state["H_diag"])
        for i in range(len(changes)):
            direction.add_(steps[i], alpha=shares[i] - changes[i].dot(direction) * weights[i])
        return direction
