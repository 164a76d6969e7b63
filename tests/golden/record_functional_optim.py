"""Records PyTorch's functional optimizers and an optimizer of a program that is built like PyTorch's: functional_optim.json.

Run with an interpreter that has torch. The problems take the module as an argument, and the tests give them rustgrad.
"""

import importlib
import inspect
import json
import sys
from pathlib import Path

RULES = {
    "adadelta": "adadelta",
    "adafactor": "_adafactor",
    "adagrad": "adagrad",
    "adam": "adam",
    "adamax": "adamax",
    "adamw": "adamw",
    "asgd": "asgd",
    "muon": "_muon",
    "nadam": "nadam",
    "radam": "radam",
    "rmsprop": "rmsprop",
    "rprop": "rprop",
    "sgd": "sgd",
}
OPTIONS = {
    "alpha": 0.9, "amsgrad": True, "adjust_lr_fn": None, "beta1": 0.9, "beta2": 0.99, "beta2_decay": -0.8, "capturable": False,
    "centered": True, "d": 1.0, "dampening": 0.1, "decoupled_weight_decay": False, "differentiable": False, "eps": 1e-6,
    "eps1": 1e-6, "eps2": 1e-3, "etaminus": 0.5, "etaplus": 1.2, "has_complex": False, "has_sparse_grad": False,
    "lambd": 1e-4, "lr": 0.1, "lr_decay": 0.1, "maximize": False, "momentum": 0.9, "momentum_decay": 0.004, "nesterov": False,
    "ns_coefficients": [3.4445, -4.775, 2.0315], "ns_steps": 5, "rho": 0.9, "step_size_max": 50, "step_size_min": 1e-6,
    "t0": 1, "weight_decay": 0.05,
}  # fmt: skip


def functions(root):
    """(name, function) of all forms of all rules."""
    for rule, file in RULES.items():
        module = importlib.import_module(f"{root}.optim.{file}")
        for name in (rule, f"_single_tensor_{rule}", f"_multi_tensor_{rule}", f"_fused_{rule}"):
            if getattr(getattr(module, name, None), "__name__", "") == name and hasattr(module, name):
                yield name, getattr(module, name)


def signature(function):
    """The names of arguments in order, with defaults, then those by keyword, sorted."""
    parts = inspect.signature(function).parameters.values()
    shown = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parts if p.kind is not p.KEYWORD_ONLY]
    named = sorted(
        p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parts if p.kind is p.KEYWORD_ONLY
    )
    return " ".join([*shown, "*", *named])


def _values(torch, shape, first):
    return torch.tensor([first + i / 11 for i in range(12)], dtype=torch.float64).view(shape)


def _list(torch, name, function):
    shapes = ((3, 4), (4, 3))
    if name == "params":
        return [_values(torch, s, 1.0) for s in shapes]
    if name in ("grads", "d_p_list"):
        return [_values(torch, s, -0.47) for s in shapes]
    if name in ("state_steps", "mu_products", "mus", "etas"):
        return [torch.tensor({"state_steps": 0.0, "etas": 0.1}.get(name, 1.0)) for _ in shapes]
    if name == "variances" or (name == "momentum_buffer_list" and "sgd" in function):
        return [None for _ in shapes]
    if name == "step_sizes":
        return [torch.full(s, 0.1, dtype=torch.float64) for s in shapes]
    sizes = {"row_vars": [(3, 1), (4, 1)], "col_vars": [(1, 4), (1, 3)]}.get(name, shapes)
    return [torch.zeros(s, dtype=torch.float64) for s in sizes]


def run(torch, name, function):
    """The lists after three steps, rounded."""
    parts = inspect.signature(function).parameters.values()
    positional = [p.name for p in parts if p.kind is not p.KEYWORD_ONLY and p.default is p.empty]
    given = [None if p in ("grad_scale", "found_inf") else _list(torch, p, name) for p in positional]
    options = {p.name: OPTIONS[p.name] for p in parts if p.kind is p.KEYWORD_ONLY and p.name in OPTIONS}
    with torch.no_grad():
        for _ in range(3):
            function(*given, **options)
    return {
        p: [t.tolist() for t in value]
        for p, value in zip(positional, given, strict=True)
        if value and value[0] is not None
    }


def program_optimizer(torch):
    """An optimizer with running means of gradients and of their differences, written as libraries write theirs."""
    helpers = importlib.import_module(f"{torch.__name__}.optim.optimizer")

    class Adan(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, betas=(0.9, 0.8, 0.99), eps=1e-8, foreach=None, differentiable=False):
            defaults = {"lr": lr, "betas": betas, "eps": eps, "foreach": foreach, "differentiable": differentiable}
            super().__init__(params, defaults)

        @helpers._use_grad_for_differentiable
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                grads = [p.grad for p in params]
                for p in params:
                    state = self.state[p]
                    if not state:
                        state["step"] = torch.tensor(0.0, dtype=helpers._get_scalar_dtype())
                        state.update(
                            {n: torch.zeros_like(p) for n in ("mean", "change", "square")}, before=p.grad.clone()
                        )
                lists = [[self.state[p][n] for p in params] for n in ("mean", "change", "square", "before", "step")]
                update = self._many if group["foreach"] else self._single
                update(params, grads, *lists, lr=group["lr"], betas=group["betas"], eps=group["eps"])
            return loss

        @staticmethod
        def _single(params, grads, means, changes, squares, befores, steps, *, lr, betas, eps):
            for p, g, m, c, s, b, step in zip(params, grads, means, changes, squares, befores, steps, strict=True):
                step += 1
                count = helpers._get_value(step)
                difference = g - b
                m.lerp_(g, 1 - betas[0])
                c.lerp_(difference, 1 - betas[1])
                update = g + betas[1] * difference
                s.mul_(betas[2]).addcmul_(update, update, value=1 - betas[2])
                root = s.sqrt() / (1 - betas[2] ** count) ** 0.5 + eps
                p.addcdiv_(m / (1 - betas[0] ** count) + betas[1] * c / (1 - betas[1] ** count), root, value=-lr)
                b.copy_(g)

        @staticmethod
        def _many(params, grads, means, changes, squares, befores, steps, *, lr, betas, eps):
            grouped = torch.optim.Optimizer._group_tensors_by_device_and_dtype(
                [params, grads, means, changes, squares, befores, steps]
            )
            for (params, grads, means, changes, squares, befores, steps), _ in grouped.values():
                helpers._view_as_real(params, grads, means, changes, squares, befores)
                torch._foreach_add_(steps, 1)
                counts = helpers._stack_if_compiling([helpers._get_value(step) for step in steps])
                differences = torch._foreach_sub(grads, befores)
                torch._foreach_lerp_(means, grads, 1 - betas[0])
                torch._foreach_lerp_(changes, differences, 1 - betas[1])
                updates = torch._foreach_add(grads, torch._foreach_mul(differences, betas[1]))
                torch._foreach_mul_(squares, betas[2])
                torch._foreach_addcmul_(squares, updates, updates, 1 - betas[2])
                roots = torch._foreach_sqrt(squares)
                torch._foreach_div_(roots, [(1 - betas[2] ** count) ** 0.5 for count in counts])
                torch._foreach_add_(roots, eps)
                steps_down = torch._foreach_div(means, [1 - betas[0] ** count for count in counts])
                parts = torch._foreach_mul(changes, [betas[1] / (1 - betas[1] ** count) for count in counts])
                torch._foreach_addcdiv_(params, torch._foreach_add(steps_down, parts), roots, -lr)
                torch._foreach_copy_(befores, grads)

    return Adan


def train(torch, foreach):
    """A small problem's parameters after five steps of the program's optimizer, and the state's steps."""
    params = [torch.nn.Parameter(_values(torch, s, 0.5)) for s in ((3, 4), (12,))]
    optimizer = program_optimizer(torch)(params, foreach=foreach)
    for _ in range(5):
        optimizer.zero_grad()
        sum(((p - 1) ** 2 * (i + 1)).sum() for i, p in enumerate(params)).backward()
        optimizer.step()
    return [[p.tolist() for p in params], [optimizer.state[p]["step"].item() for p in params]]


if __name__ == "__main__":
    import torch

    found = dict(functions("torch"))
    record = {
        "version": torch.__version__,
        "signatures": {name: signature(f) for name, f in found.items()},
        "results": {name: run(torch, name, f) for name, f in found.items() if not name.startswith("_")},
        "program": train(torch, False),
    }
    Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "functional_optim.json").write_text(
        json.dumps(record)
    )
