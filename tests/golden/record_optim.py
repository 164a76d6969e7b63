"""Records PyTorch's optimizers and schedulers: python tests/golden/record_optim.py > tests/golden/optim.json

An optimizer case has its class, its options and the parameters after each of several steps on a fixed problem; a
scheduler case has the learning rates (and momenta) epoch by epoch. The tests run `problem` below too.
"""

import json
import math

import torch

STEPS = 6
W = [[0.5, -1.25, 0.75], [2.0, 0.125, -0.5]]
B = [0.25, -0.75]
X = [[1.0, 0.5, -0.25], [-0.5, 1.5, 0.75], [0.25, -1.0, 2.0], [1.25, 0.0, -1.5]]
Y = [[0.5, 1.0], [-1.0, 0.25], [0.75, -0.5], [0.0, 1.5]]

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.02, "momentum": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.9, "centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "maximize": True}),
    ("Adagrad", {"lr": 0.5}),
    ("Adagrad", {"lr": 0.5, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.5, "beta2_decay": -0.5, "eps": [1e-4, 0.05], "d": 1.5, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "maximize": True}),
]

SCHEDULERS = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.1}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 13}),
    (
        "OneCycleLR",
        {"max_lr": 0.4, "epochs": 4, "steps_per_epoch": 4, "three_phase": True, "anneal_strategy": "linear"},
    ),
]
EPOCHS = 12
METRICS = [1.0, 0.9, 0.95, 0.95, 0.95, 0.95, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]


def problem(torch, name, options, dtype):
    """(parameters, optimizer, closure) of the fixed least-squares problem."""
    w = torch.tensor(W, dtype=dtype).requires_grad_()
    b = torch.tensor(B, dtype=dtype).requires_grad_()
    x, y = torch.tensor(X, dtype=dtype), torch.tensor(Y, dtype=dtype)
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    optimizer = getattr(torch.optim, name)([w, b], **options)

    def closure():
        optimizer.zero_grad()
        loss = ((x.matmul(w.t()) + b - y) ** 2).mean()
        loss.backward()
        return loss

    return (w, b), optimizer, closure


def optimizer_case(name, options):
    params, optimizer, closure = problem(torch, name, options, torch.float64)
    steps = []
    for _ in range(STEPS):
        loss = optimizer.step(closure)
        steps.append({"loss": loss.item(), "params": [p.tolist() for p in params]})
    keys = sorted(optimizer.state_dict()["state"].get(0, {}))
    group = sorted(k for k in optimizer.param_groups[0] if k != "params")
    return {"name": name, "options": options, "steps": steps, "state": keys, "group": group}


def scheduler_case(name, options):
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.2, momentum=0.9)
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    rates = []
    for _ in range(EPOCHS):
        rates.append([optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]])
        optimizer.step()
        scheduler.step()
    return {"name": name, "options": options, "rates": rates}


def plateau_case(options):
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    rates = []
    for metric in METRICS:
        scheduler.step(-metric if options.get("mode") == "max" else metric)
        rates.append(optimizer.param_groups[0]["lr"])
    return {"options": options, "rates": rates}


def main():
    record = {
        "torch": torch.__version__.split("+")[0],
        "optimizers": [optimizer_case(*case) for case in OPTIMIZERS],
        "schedulers": [scheduler_case(*case) for case in SCHEDULERS],
        "plateau": [
            plateau_case({"patience": 2}),
            plateau_case({"patience": 1, "factor": 0.5, "cooldown": 2, "min_lr": 0.03}),
            plateau_case({"mode": "max", "patience": 1, "threshold": 0.1, "threshold_mode": "abs"}),
        ],
        "repr": repr(torch.optim.Adam([torch.zeros(1)], lr=0.25)),
    }
    assert all(math.isfinite(s["loss"]) for c in record["optimizers"] for s in c["steps"])
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
