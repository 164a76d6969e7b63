"""Calls: names, order, defaults and keyword-only parameters of every public function against PyTorch's.

`golden/signatures.json` holds PyTorch's overloads (record_signatures.py). Each must be covered by an overload here: the
same names in the same positions, equal defaults, None where PyTorch accepts it. More parameters are allowed. KNOWN is
strict: an entry that excuses nothing fails.
"""

import inspect
import json
import re
import warnings
from pathlib import Path

import pytest
from support import target
from support.optable import ops
from support.samples import split

GOLDEN = json.loads((Path(__file__).parent / "golden" / "signatures.json").read_text())["signatures"]
SPACES = sorted({name.rpartition(".")[0] for name in GOLDEN})
# Keywords with only one valid value; ops that create tensors accept them without a parameter.
ANYWHERE = {"layout", "pin_memory", "memory_format", "requires_grad", "dtype", "device", "generator"}

# (pattern of the name, pattern of the difference, why)
KNOWN: list[tuple[str, str, str]] = [
    (r"^torch\.(linspace|logspace)$", "^steps", "a stub's overload that PyTorch refuses"),
    (r"^torch\.numel$", "self|input", "a stub's name that PyTorch refuses"),
    (r"^(torch\.tensor|Tensor\.new_(ones|tensor))$", "is keyword-only", "by position in the stub alone"),
    (r"^Tensor\.requires_grad_$", "no mode", "a stub's name that PyTorch refuses"),
    (r"^torch\.as_tensor$", "is not keyword-only", "taken by position too"),
    (r"^torch\.frombuffer$", "count", "its default has no text here"),
    (r"^torch\.(set_num_threads)$", "num|needs n", "PyTorch takes it by position alone"),
    (r"^(torch|Tensor)\.div_?$", "rounding_mode", "an overload of its own, without a default"),
    (r"^Tensor\.hash_tensor$", "may not be None", "it may; the method has no annotations"),
    (r"^torch\.nuclear_norm$", "keepdim comes as 2", "an overload without `dim`; a bool in its place is `keepdim`"),
    (r"^(torch|Tensor)\.norm$", "^p=None|dtype comes as 4", "'fro' is the default of the overload with a name"),
    (r"^linalg\.(matrix_exp|matrix_sqrth)$", "no out", "in the schema alone: PyTorch refuses it"),
    (r"^nn\.functional\.(pixel_(un)?|channel_)shuffle$", "no out", "in the schema alone: PyTorch refuses it"),
    (r"^nn\.functional\.has_torch_function$", "^needs relevant_args", "PyTorch's has no text of its signature"),
    (r"^nn\.functional\.(un)?fold$", "may not be None", "in the annotation alone: PyTorch refuses it"),
    (r"^special\.log_softmax$", "dtype is not keyword-only", "another name of log_softmax"),
    (r"^special\.round$", "no decimals", "an overload of its own, without a default"),
    (
        r"^nn\.functional\.(adaptive_(avg|max)_pool\dd(_with_indices)?|lp_pool\dd|"
        r"(fractional_)?max_pool\dd_with_indices|max_unpool\dd)$",
        "may not be None",
        "a list type of scripts that reads as if None were one; PyTorch refuses it",
    ),
    (
        r"^(torch|nn\.functional)\.(avg|max)_pool\dd(_with_indices)?$",
        r"stride=None, not \(\)",
        "both mean the kernel's size",
    ),
    (
        r"^(torch\.native_batch_norm|nn\.functional\.(adaptive_avg_pool1d|avg_pool\dd))$",
        "no out",
        "these take no out",
    ),
    (
        r"^torch\.(binary_cross_entropy_with_logits|(cosine|hinge)_embedding_loss|ctc_loss|kl_div|(margin_ranking|triplet_margin)_loss)$",
        "reduction=0, not 1",
        "without reduction PyTorch gives every loss, whatever its stub says",
    ),
    (r"^torch\.svd_lowrank$", "may not be None", "PyTorch puts its defaults in the place of None"),
]


class Parameter:
    def __init__(self, name, none, default, keyword, also=None):
        self.name, self.none, self.default, self.keyword = name.lstrip("*"), none, default, keyword
        self.names = {self.name, also, "input" if self.name == "self" else None} - {None}


def spelled(default):
    """A default as spelled in the golden file."""
    if default is None:
        return None
    text = default.strip("'").replace("[", "(").replace("]", ")")
    try:
        value = float(text)
        return repr(int(value)) if value == int(value) else repr(value)
    except (ValueError, OverflowError):
        return text


def same_default(theirs, ours):
    """Whether two defaults are one: a number for all dimensions is PyTorch's list of that number for each."""
    items = set(theirs.strip("()").replace(" ", "").split(",")) - {""}
    return ours == theirs or (theirs.startswith("(") and items == {ours})


def recorded(text):
    found, keyword = [], False
    for part in split(text):
        if part == "*":
            keyword = True
            continue
        name, _, default = part.partition("=")
        found.append(Parameter(name.rstrip("?"), name.endswith("?"), spelled(default) if _ else None, keyword))
    return found


def of_row(row, method, inplace):
    found = [
        Parameter(p["name"], p["takes_none"], spelled(p["default"]), p["keyword_only"], p["also"])
        for p in row["params"]
    ]
    if row["out"] and not inplace:
        found.append(Parameter("out", True, "None", True))
    return found[1:] if method else found


def of_function(function, method):
    found = []
    for p in list(inspect.signature(function).parameters.values())[bool(method) :]:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return None
        default = None if p.default is p.empty else spelled(repr(p.default))
        takes_none = default == "None" or "None" in str(p.annotation).split(" | ")
        found.append(Parameter(p.name, takes_none, default, p.kind is p.KEYWORD_ONLY))
    return found


def table(torch):
    """`{name: [parameters of each overload]}` of the ops."""
    found = {}
    for row in torch._C.op_table():
        for public in (row["public"], *row["aliases"]):
            space, _, leaf = public.rpartition(".")
            space = space or "torch"
            if row["function"]:
                found.setdefault(f"{space}.{leaf}", []).append(of_row(row, False, row["only_inplace"]))
            if row["method"] and space == "torch":
                found.setdefault(f"Tensor.{leaf}", []).append(of_row(row, True, row["only_inplace"]))
            if row["inplace"] and not row["only_inplace"] and space == "torch":
                found.setdefault(f"Tensor.{leaf}_", []).append(of_row(row, True, True))
                found.setdefault(f"torch.{leaf}_", []).append(of_row(row, False, True))
    return found


def here(torch, name, rows):
    """The overloads of a name here; None if it is missing or its arguments have no names."""
    root = torch
    for part in name.split(".")[0 if not name.startswith("torch.") else 1 :]:
        root = getattr(root, part, None)
    if root is None:
        return None
    if type(root).__name__ == "Op":
        return rows.get(name)
    try:
        one = of_function(root, name.startswith("Tensor."))
    except (TypeError, ValueError):
        return None
    return None if one is None else [one]


def differences(theirs, ours):
    """What an overload of PyTorch's has that one of ours has not."""
    found, positions = [], [p for p in ours if not p.keyword]
    for at, p in enumerate(theirs):
        mine = next((q for q in ours if p.name in q.names), None)
        if mine is None:
            if p.name not in ANYWHERE:
                found.append(f"no {p.name}")
            continue
        if p.name == "out" or (p.name in ANYWHERE and not p.keyword and not mine.keyword):
            continue
        if p.keyword and not mine.keyword:
            found.append(f"{p.name} is not keyword-only")
        elif not p.keyword and mine.keyword:
            found.append(f"{p.name} is keyword-only")
        elif not p.keyword and positions.index(mine) != at:
            found.append(f"{p.name} comes as {positions.index(mine)}, not {at}")
        if p.default not in (None, "...") and not same_default(p.default, mine.default) and p.name not in ANYWHERE:
            found.append(f"{p.name}={mine.default}, not {p.default}")
        if p.none and not mine.none:
            found.append(f"{p.name} may not be None")
    names = {p.name for p in theirs}
    return found + [f"needs {q.name}" for q in ours if q.default is None and not q.names & names]


def deprecated(overload):
    """Whether PyTorch's parser itself warns of an order: a number comes before or after `self`."""
    return any(p.name == "self" for p in overload[:2]) and overload[0].name in ("beta", "self") and len(overload) > 2


@pytest.fixture(scope="module")
def rows(torch):
    return table(torch)


@pytest.mark.parametrize("space", SPACES)
def test_names_order_defaults(torch, rows, space):
    problems, used = [], set()
    for name, overloads in GOLDEN.items():
        if name.rpartition(".")[0] != space or not (ours := here(torch, name, rows)):
            continue
        for text in overloads:
            theirs = recorded(text)
            if deprecated(theirs):
                continue
            least = min((differences(theirs, o) for o in ours), key=len)
            excuses = [next((k for k in KNOWN if re.search(k[0], name) and re.search(k[1], d)), None) for d in least]
            used.update(excuses)
            problems += [f"{name}({text}): {d}" for d, k in zip(least, excuses, strict=True) if k is None]
    idle = [k for k in KNOWN if k[0].lstrip("^(").startswith(space + r"\.") and k not in used]
    assert not problems, f"{len(problems)} differences:\n" + "\n".join(problems)
    assert not idle, f"known differences that are none: {idle}"


def by_keyword(call, overload):
    """The names of a call's arguments in PyTorch's overload; None where it has more, or not all that are needed."""
    names = [p.name for p in overload]
    if len(call.args) > len(names) or any(p.keyword for p in overload[: len(call.args)]):
        return None
    named = [*names[: len(call.args)], *call.kwargs]
    required = {p.name for p in overload if p.default is None}
    return named if set(named) <= set(names) and required <= set(named) else None


@pytest.mark.filterwarnings("ignore")
def test_calls_by_keyword(torch):
    """The samples of every op with all arguments by PyTorch's names: the same results as by position."""
    problems, done = [], 0
    for op in ops():
        if not op.function or op.only_inplace or op.undefined or op.leaf in ("einsum",):
            continue
        name = op.public if "." in op.public else f"torch.{op.public}"
        overloads = [recorded(t) for t in GOLDEN.get(name, ()) if not t.startswith("*")]
        for call in op.calls()[:2]:
            answers = []
            args, kwargs, _ = target.build(call)
            for names in filter(None, (by_keyword(call, o) for o in overloads)):
                try:
                    got = op.run([], dict(zip(names, [*args, *kwargs.values()], strict=True)))
                    answers.append("" if same(torch, got, op.run(args, kwargs)) else "other results")
                except TypeError as e:
                    answers.append(f"({', '.join(names)}): {e}"[:200])
            done += bool(answers)
            # Overloads differ by types: one of them must accept the call.
            if answers and "" not in answers:
                problems.append(f"{name} of {call.text}: {answers}")
    assert done > 400
    assert not problems, f"{len(problems)} of {done}:\n" + "\n".join(problems)


def same(torch, a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    return len(a) == len(b) and all(same(torch, x, y) for x, y in zip(a, b, strict=True))


def test_names_of_numpy(torch):
    x = torch.arange(6.0).reshape(2, 3)
    for name in ("x", "a", "x1", "input"):
        assert torch.equal(torch.sum(**{name: x}, axis=0, keepdims=True), x.sum(0, True))
    assert torch.equal(torch.add(x1=x, x2=x), x + x) and torch.equal(torch.mul(x, x2=2), x * 2)
    assert torch.equal(torch.cat([x, x], axis=1), torch.cat([x, x], 1))
    assert torch.equal(torch.swapaxes(x, axis0=0, axis1=1), x.t()) and x.swapaxes(axis0=0, axis1=1).shape == (3, 2)
    assert [t.tolist() for t in x.split(split_size=1)] == [
        t.tolist() for t in torch.split(tensor=x, split_size_or_sections=1)
    ]


def test_none_for_an_empty_list_of_dimensions(torch):
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.amax(x, dim=None).item() == 5 and x.amin(None, True).shape == (1, 1)
    assert torch.roll(x, 1, dims=None).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert torch.all(x, dim=None).shape == () and torch.any(x, dim=()).tolist() == [[False, True, True], [True] * 3]
    assert torch.all(x, dim=[]).shape == (2, 3)
    with pytest.raises(TypeError):
        torch.flip(x, None)


@pytest.mark.filterwarnings("error")
def test_two_numbers(torch):
    cases = [
        (torch.add(1, 2), 3, torch.int64), (torch.add(1, 2.5), 3.5, torch.float32), (torch.mul(True, 3), 3, torch.int64),
        (torch.add(True, True), True, torch.bool), (torch.div(7, 2), 3.5, torch.float32),
        (torch.div(7, 2, rounding_mode="floor"), 3, torch.int64), (torch.floor_divide(7, 2), 3, torch.int64),
        (torch.sub(1, 2, alpha=3), -5, torch.int64), (torch.true_divide(1, 2), 0.5, torch.float32),
        (torch.add(1j, 1), 1 + 1j, torch.complex64),
    ]  # fmt: skip
    for got, value, dtype in cases:
        assert got.item() == value and got.dtype == dtype and got.shape == ()
    assert torch.add(1, 2, out=torch.empty(())).item() == 3
    with pytest.raises(TypeError):
        torch.maximum(1, 2)


@pytest.mark.usefixtures("warn_always")
def test_orders_that_are_deprecated(torch):
    m, eye, v = torch.ones(2, 2), torch.eye(2), torch.ones(2)
    calls = [
        (lambda: torch.add(v, 2.0, v), [3, 3]),
        (lambda: torch.sub(v, 2, v), [-1, -1]),
        (lambda: v.clone().add_(2, v), [3, 3]),
        (lambda: torch.addcmul(v, 2.0, v, v), [3, 3]),
        (lambda: v.clone().addcdiv_(2.0, v, v), [3, 3]),
        (lambda: torch.addmm(2, m, 3, eye, eye), [[5, 2], [2, 5]]),
        (lambda: torch.addmm(2, m, eye, eye, out=torch.empty(2, 2)), [[3, 2], [2, 3]]),
        (lambda: m.clone().addmm_(2, eye, eye), [[3, 2], [2, 3]]),
        (lambda: m.clone().addmm_(1, 2, eye, eye), [[3, 1], [1, 3]]),
        (lambda: torch.addmv(2, v, m, v), [4, 4]),
        (lambda: torch.addr(2, m, 3, v, v), [[5, 5], [5, 5]]),
        (lambda: m[None].clone().baddbmm_(2, m[None], m[None]), [[[4, 4], [4, 4]]]),
        (lambda: torch.addbmm(2, m, 3, m[None], m[None]), [[8, 8], [8, 8]]),
    ]
    for call, want in calls:
        with pytest.warns(UserWarning, match="This overload of .* is deprecated"):
            assert call().tolist() == want
    with pytest.raises(TypeError, match="addmm"):
        torch.addmm("2", m, eye, eye)


def test_results_in_out_have_names(torch):
    x, whole = torch.arange(6.0).reshape(2, 3), torch.empty(0, dtype=torch.int64)
    values = torch.empty(0)
    found = torch.max(x, 0, out=(values, whole))
    assert type(found).__name__ == "max_out" and found.values is values and found.indices.tolist() == [1, 1, 1]
    assert repr(found).startswith("torch.return_types.max_out(")
    assert type(torch.sort(x, out=[torch.empty(0), torch.empty(0, dtype=torch.int64)])).__name__ == "sort_out"
    into = (torch.empty(2, 2), torch.empty(0, dtype=torch.int32))
    assert torch.equal(torch.linalg.inv_ex(2 * torch.eye(2), out=into).inverse, torch.eye(2) / 2)
    parts = [torch.empty(1, 3), torch.empty(1, 3)]
    assert torch.split_with_sizes_copy(x, [1, 1], out=parts) is None and parts[1].tolist() == [[3, 4, 5]]
    for call in (
        lambda: torch.add(x, x, out=(x,)),
        lambda: torch.max(x, 0, out=x),
        lambda: torch.max(x, 0, out=[x, 1]),
    ):
        with pytest.raises(TypeError, match="argument 'out' must be"):
            call()


def test_out_of_more_functions(torch):
    assert torch.argsort(torch.tensor([2.0, 1.0]), stable=True, out=torch.empty(0, dtype=torch.int64)).tolist() == [
        1,
        0,
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.range(0, 3, out=torch.empty(0)).tolist() == [0, 1, 2, 3]
        assert torch.chain_matmul(torch.eye(2), torch.eye(2), out=torch.empty(2, 2)).tolist() == [[1, 0], [0, 1]]
    assert torch.threshold(torch.tensor([1.0, 3.0]), 2, 7, out=torch.empty(2)).tolist() == [7, 3]
    into = torch.empty(0, dtype=torch.complex128)
    assert torch.linalg.eigvals(torch.eye(2), out=into).dtype == torch.complex128


def test_lists_without_tensors(torch):
    assert torch.block_diag().shape == (1, 0) and torch.broadcast_tensors() == () and torch.atleast_1d() == ()
    assert torch.cat([torch.ones(0), torch.ones(0)], dim=1).shape == (0,)
    for call in (torch.meshgrid, torch.chain_matmul, torch.cartesian_prod):
        with pytest.raises(RuntimeError, match="non-empty|one or more"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()


def test_pinv_by_rcond(torch):
    a = torch.diag(torch.tensor([1.0, 1e-4]))
    want = [[1, 0], [0, 0]]
    for got in (
        torch.linalg.pinv(a, 1e-3), torch.linalg.pinv(a, rcond=1e-3), torch.linalg.pinv(a, torch.tensor(1e-3)),
        torch.linalg.pinv(a, 1e-3, True), torch.linalg.pinv(a, rtol=1e-3),
    ):  # fmt: skip
        assert got.tolist() == want


def test_result_type_by_name(torch):
    x = torch.ones(2, dtype=torch.int32)
    assert torch.result_type(tensor=x, other=1.5) == torch.float32 and torch.result_type(x, other=x) == torch.int32
    assert torch.result_type(scalar=1, tensor=x) == torch.int32
    assert torch.result_type(scalar1=1, scalar2=2) == torch.int64
    for bad in ({"tensor": x}, {"scalar1": 1, "other": 2}, {"tensor": x, "other": x, "third": x}):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            torch.result_type(**bad)


def test_channels_stay_last(torch):
    x = torch.arange(120.0).reshape(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    pad = torch.nn.functional.pad
    kept = [
        torch.cat([x, x], 1), torch.cat([x, x]), torch.roll(x, 1, 2), pad(x, (1, 1, 1, 1)), pad(x, (1, 0), value=2.0),
        pad(x, (1, 1, 1, 1), mode="reflect"), pad(x, (2, 1, 1, 1), mode="replicate"),
    ]  # fmt: skip
    plain = x.contiguous()
    same_ones = [
        torch.cat([plain, plain], 1), torch.cat([plain, plain]), torch.roll(plain, 1, 2), pad(plain, (1, 1, 1, 1)),
        pad(plain, (1, 0), value=2.0), pad(plain, (1, 1, 1, 1), mode="reflect"), pad(plain, (2, 1, 1, 1), mode="replicate"),
    ]  # fmt: skip
    for got, want in zip(kept, same_ones, strict=True):
        assert got.is_contiguous(memory_format=torch.channels_last) and not got.is_contiguous()
        assert want.is_contiguous() and torch.equal(got, want)
    assert torch.cat([x, plain]).is_contiguous() and torch.roll(x, 1).is_contiguous()
    assert torch.stack([x, x]).stride() == (120, 60, 1, 15, 3) and torch.stack([x, x], 1).stride() == (120, 3, 1, 30, 6)
    assert torch.equal(torch.stack([x, x], 1), torch.stack([plain, plain], 1))
    unpadded = pad(plain, (0, 0, 0, 0), mode="circular")
    assert torch.equal(unpadded, plain) and unpadded.data_ptr() != plain.data_ptr()


def test_functions_that_are_removed(torch):
    a = torch.eye(2)
    for name in ("cholesky", "eig", "lstsq", "matrix_rank", "qr", "solve", "symeig"):
        with pytest.raises(RuntimeError, match=rf"{name}: This function was deprecated .*torch\.linalg\."):
            getattr(torch, name)(a)
    with pytest.raises(RuntimeError, match="torch.linalg.qr"):
        a.qr()


def test_dtype_and_out_agree(torch):
    x, wide = torch.ones(2, 3), torch.empty(3, dtype=torch.float64)
    for call in (torch.sum, torch.prod):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double"):
            call(x, 0, dtype=torch.float32, out=wide)
        assert call(x, 0, dtype=torch.float64, out=wide) is wide and call(x, 0, out=wide) is wide
    with pytest.raises(RuntimeError, match=r"dtype Float does not match dtype of out parameter \(Double\)"):
        torch.arange(3, dtype=torch.float32, out=wide)


def test_alpha_of_another_kind(torch):
    whole = torch.tensor([1], dtype=torch.int8)
    for function in (torch.add, torch.sub):
        with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
            function(whole, whole, alpha=True)
        with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
            function(whole, whole, alpha=1.0)
    assert torch.add(whole, 2.5, alpha=1.5).item() == 4.75


def test_bools(torch):
    yes = torch.tensor([True, False])
    assert (
        (yes**True).tolist() == [True, False]
        and (yes**False).tolist() == [True, True]
        and (yes**2).dtype == torch.int64
    )
    assert torch.empty(0, dtype=torch.bool).cumsum_(0).dtype == torch.bool
    for name in ("cumsum_", "cumprod_"):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            getattr(yes.clone(), name)(0)
    # In-place ops compute in the tensor's dtype.
    assert torch.full((3,), 100, dtype=torch.int8).cumsum_(0).tolist() == [100, -56, 44]


def test_in_place_errors_come_in_order(torch):
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape") as error:
        torch.ones(2, dtype=torch.int8).bitwise_and_(torch.ones(3, 2))
    assert error.type is RuntimeError
    with pytest.raises(RuntimeError, match="can't be cast") as error:
        torch.ones(2, dtype=torch.int8).bitwise_and_(torch.ones(2))
    assert error.type is RuntimeError


def test_classes_of_errors(torch):
    eye = torch.eye(2)
    cases = [
        (IndexError, "non-zero size", lambda: torch.kthvalue(torch.empty(0, 3), 1, 0)),
        (ValueError, "invalid norm type: wrong", lambda: torch.linalg.cond(eye, "wrong")),
        (ValueError, "invalid norm type: 3", lambda: torch.linalg.cond(eye, 3)),
        (RuntimeError, "dim must be a 2-tuple", lambda: torch.linalg.norm(eye, "fro", 0)),
        (RuntimeError, "non-complex", lambda: torch.linalg.matrix_norm(eye, 1j)),
        (RuntimeError, "non-complex", lambda: torch.linalg.vector_norm(eye, 1j)),
        (RuntimeError, "same dtype", lambda: torch.meshgrid(torch.ones(1), torch.ones(1).long(), indexing="ij")),
        (TypeError, "must be real number, not str", lambda: torch.ones(2).apply_(lambda v: "a")),
        (TypeError, "must be real number, not str", lambda: torch.ones(2).map_(torch.ones(2), lambda a, b: "a")),
        (RuntimeError, "Boolean beta", lambda: torch.addr(eye, torch.ones(2), torch.ones(2), beta=True)),
        (RuntimeError, "dim should be positive", lambda: torch.index_select(torch.ones(0, 3), 0, torch.tensor([0]))),
    ]
    for expected, text, call in cases:
        with pytest.raises(expected, match=text) as error:
            call()
        assert error.type is expected


def test_addr_promotes(torch):
    bits = torch.ones(2, dtype=torch.bool)
    assert torch.addr(torch.ones(2, 2, dtype=torch.uint8), bits, bits).dtype == torch.uint8
    assert torch.addr(torch.ones(2, 2, dtype=torch.bool), bits.byte(), bits.byte()).dtype == torch.uint8


def test_dropout_in_place(torch):
    x = torch.ones(3)
    assert torch.dropout_(x, 1.0, True) is x and x.tolist() == [0, 0, 0]
    y = torch.ones(1000)
    torch.dropout_(y, 0.5, True)
    assert set(y.tolist()) == {0.0, 2.0}
    assert torch.detach_copy(x).data_ptr() != x.data_ptr()


def test_complex_numbers_are_not_cut(torch):
    """A complex number for a real element or argument is an error: its imaginary part is not dropped."""
    x, m, functional = torch.tensor([1.0, 2.0]), torch.ones(2, 2), torch.nn.functional
    calls = [
        lambda: torch.lerp(x, x, 1j), lambda: torch.addcmul(x, x, x, value=1j), lambda: functional.hardshrink(x, 1j),
        lambda: functional.softplus(x, 1j), lambda: functional.softshrink(x, 1j), lambda: torch.histc(x, 2, 1j, 2),
        lambda: torch.addmm(m, m, m, alpha=1j), lambda: torch.baddbmm(m[None], m[None], m[None], beta=1j),
        lambda: torch.addr(x, x, x, alpha=1j), lambda: torch.index_add(x, 0, torch.tensor([0]), x[:1], alpha=1j),
        lambda: torch.rsub(x, 1, alpha=1j), lambda: torch.trapezoid(x, dx=1j),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="without overflow|complex number|real number"):
            call()
    z = torch.tensor([1 + 1j, 2 - 1j, 3 + 0j])
    assert torch.addcmul(z, z, z, value=1j)[0].item() == -1 + 1j
    assert torch.gradient(z, spacing=1j)[0].tolist() == [-2 - 1j, -0.5 - 1j, 1 - 1j]


def test_nothing_of_any_dtype(torch):
    whole = torch.empty(0, dtype=torch.int64)
    assert torch.softmax(whole, 0).dtype == torch.int64 and torch.log_softmax(whole, 0).shape == (0,)
    with pytest.raises(NotImplementedError):
        torch.softmax(torch.ones(1, dtype=torch.int64), 0)


def test_shapes_that_are_none(torch):
    for bad in (1.5, torch.tensor([2]), None):
        with pytest.raises(RuntimeError, match="Input shapes should be of type ints"):
            torch.broadcast_shapes((2,), bad)
    assert torch.broadcast_shapes([2, 1], (3,), 1) == (2, 3)
