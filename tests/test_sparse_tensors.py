"""Sparse tensors as objects: how they are made, asked, copied, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more, or checks less")
INDEX, VALUE = [[0, 1], [1, 0]], [3.0, 4.0]


@pytest.fixture
def s(torch):
    return torch.sparse_coo_tensor(INDEX, VALUE, (2, 2))


def test_constructors(torch):
    index, value = torch.tensor(INDEX), torch.tensor(VALUE)
    s = torch.sparse_coo_tensor(index, value)
    assert s.shape == (2, 2) and s.layout is torch.sparse_coo and s.dtype == torch.float32 and not s.is_coalesced()
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.dim(), s.numel()) == (2, 2, 0, 2, 4)
    assert s._values().data_ptr() == value.data_ptr() and s._indices().data_ptr() == index.data_ptr()
    value.mul_(2)
    assert s.to_dense().tolist() == [[0, 6], [8, 0]]
    s._values().zero_()
    assert value.tolist() == [0, 0]
    assert torch.sparse_coo_tensor(INDEX, [1, 2], dtype=torch.float16).dtype == torch.float16
    assert torch.sparse_coo_tensor(np.array(INDEX, dtype=np.int32), np.array(VALUE))._indices().dtype == torch.int64
    empty = torch.sparse_coo_tensor((2, 3))
    assert empty.shape == (2, 3) and empty._nnz() == 0 and empty.is_coalesced()
    assert torch.sparse_coo_tensor(size=(2,), dtype=torch.int64).dtype == torch.int64
    assert torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0, 2)).shape == (0, 0, 2)
    assert torch.sparse_coo_tensor(torch.empty(0, 1, dtype=torch.int64), torch.ones(1), ()).to_dense().item() == 1
    assert torch.sparse_coo_tensor([[0, 1]], VALUE, (2,), is_coalesced=True).is_coalesced()
    assert torch.sparse_coo_tensor([[1]], [2.0]).is_coalesced()
    for made in (
        torch.sparse_csr_tensor([0, 1, 2], [1, 0], VALUE),
        torch.sparse_csc_tensor([0, 1, 2], [1, 0], [4.0, 3.0]),
        torch.sparse_compressed_tensor([0, 1, 2], [1, 0], VALUE, (2, 2), layout=torch.sparse_csr),
    ):
        assert made.to_dense().tolist() == [[0, 3], [4, 0]]
    c = torch.sparse_csr_tensor(
        torch.tensor([0, 1], dtype=torch.int32), torch.tensor([2], dtype=torch.int32), torch.ones(1)
    )
    assert c.crow_indices().dtype == torch.int32 and c.shape == (1, 3) and c.t().ccol_indices().tolist() == [0, 1]


@own
def test_legacy_constructors(torch):
    index, value = torch.tensor(INDEX), torch.tensor(VALUE)
    kinds = torch.sparse
    s = kinds.FloatTensor(index, value, torch.Size([2, 2]))
    assert s.to_dense().tolist() == [[0, 3], [4, 0]] and s._values().data_ptr() == value.data_ptr()
    assert kinds.FloatTensor(index, value).shape == (2, 2) and kinds.DoubleTensor(2, 3).dtype == torch.float64
    assert kinds.LongTensor(torch.Size([2])).dtype == torch.int64 and kinds.FloatTensor().shape == (0,)
    assert s.type() == "torch.sparse.FloatTensor" and s.type("torch.sparse.DoubleTensor").dtype == torch.float64
    assert s.new(2, 3).layout is torch.sparse_coo
    assert str(kinds.HalfTensor) == "torch.sparse.HalfTensor"
    assert isinstance(s, kinds.FloatTensor) and not isinstance(value, kinds.FloatTensor)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        kinds.FloatTensor(index, value, 2)
    with pytest.raises(RuntimeError, match="indices must be an int64 tensor"):
        kinds.FloatTensor(index.int(), value)


WRONG = {
    "number of elements": (
        lambda t: t.sparse_coo_tensor([[0]], VALUE),
        "must have same nnz, but got nnz from indices: 1",
    ),
    "indices of one dimension": (lambda t: t.sparse_coo_tensor([0, 1], VALUE), "must be sparse_dim x nnz"),
    "one value": (lambda t: t.sparse_coo_tensor([[0, 1]], 1.0), "nnz from values: 1"),
    "rank": (lambda t: t.sparse_coo_tensor([[0, 1]], VALUE, (3, 3)), r"'len\(size\) == sparse_dim \+ dense_dim'"),
    "dense size": (lambda t: t.sparse_coo_tensor([[0, 1]], [VALUE, VALUE], (3, 5)), r"expected \[2, 5\], got \[2, 2\]"),
    "negative index": (lambda t: t.sparse_coo_tensor([[0, -1]], VALUE), "found negative index -1 for dim 0"),
    "no indices": (lambda t: t.sparse_coo_tensor([], []), r"but got: \[0\]"),
    "too large": (lambda t: t.sparse_coo_tensor(size=(10**10, 10**10)), "overflow"),
    "integers with grad": (lambda t: t.sparse_coo_tensor([[0]], [1], requires_grad=True), "floating point and complex"),
    "a size of another type": (lambda t: t.sparse_coo_tensor([[0]], [1.0], 3), TypeError),
    "no layout": (lambda t: t.sparse_compressed_tensor([0, 1], [0], [1.0]), "layout but got none"),
    "strided": (
        lambda t: t.sparse_compressed_tensor([0, 1], [0], [1.0], layout=t.strided),
        "expected sparse compressed tensor layout but got Strided",
    ),
    "other layout": (
        lambda t: t.sparse_csr_tensor([0, 1], [0], [1.0], layout=t.sparse_csc),
        "layout must be SparseCsr but got SparseCsc",
    ),
}
CHECKED = {
    "index too large": (lambda t: t.sparse_coo_tensor([[0, 1]], VALUE, (1,)), "size is 1 but found index 1"),
    "index below zero": (lambda t: t.sparse_coo_tensor([[0, -1]], VALUE, (2,)), "found negative index -1"),
    "not sorted": (
        lambda t: t.sparse_coo_tensor([[1, 0]], VALUE, (2,), is_coalesced=True),
        "cannot set is_coalesced to true",
    ),
    "last pointer": (lambda t: t.sparse_csr_tensor([0, 1, 3], [1, 0], VALUE), r"`crow_indices\[..., -1\] == nnz`"),
    "first pointer": (
        lambda t: t.sparse_csr_tensor([1, 1, 2], [1, 0], VALUE, (2, 2)),
        r"`crow_indices\[..., 0\] == 0`",
    ),
    "order in a row": (lambda t: t.sparse_csr_tensor([0, 2, 2], [1, 0], VALUE, (2, 2)), "sorted and distinct"),
    "equal in a row": (lambda t: t.sparse_csr_tensor([0, 2, 2], [1, 1], VALUE, (2, 2)), "for all i = 1, ..., nrows"),
    "equal in a column": (lambda t: t.sparse_csc_tensor([0, 2, 2], [1, 1], VALUE, (2, 2)), "for all i = 1, ..., ncols"),
    "falling pointers": (
        lambda t: t.sparse_csr_tensor([0, 2, 1, 2], [0, 1], VALUE, (3, 2)),
        r"0 <= crow_indices\[..., 1:\]",
    ),
    "column": (lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 5], VALUE, (2, 2)), "`0 <= col_indices < ncols`"),
    "negative column": (lambda t: t.sparse_csr_tensor([0, 1, 2], [1, -1], VALUE, (2, 2)), "`0 <= col_indices < ncols`"),
    "row": (lambda t: t.sparse_csc_tensor([0, 1, 2], [1, 5], VALUE, (2, 2)), "`0 <= row_indices < nrows`"),
    "rows": (lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], VALUE, (3, 2)), r"number of rows \+ 1 \(=4\), but got 3"),
    "vector": (lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], VALUE, (2,)), "tensor dimensionality must be sum of"),
    "values": (lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0], (2, 2)), "must be equal to nnz"),
    "ranks": (lambda t: t.sparse_csr_tensor([0, 1, 2], [[1, 0]], VALUE, (2, 2)), "dimensionalities must be equal"),
    "dtypes": (
        lambda t: t.sparse_csr_tensor(t.tensor([0, 1, 2], dtype=t.int32), [1, 0], VALUE, (2, 2)),
        "must have the same dtype",
    ),
    "no pointers": (lambda t: t.sparse_csr_tensor(0, [1, 0], VALUE, (2, 2)), "must have dimensionality >= 1"),
    "a scalar": (
        lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], 1.0, (2, 2)),
        "must have dimensionality > sum of batch",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parts(torch, name):
    make, wanted = WRONG[name]
    with pytest.raises(
        RuntimeError if isinstance(wanted, str) else wanted, match=wanted if isinstance(wanted, str) else None
    ):
        make(torch)


@pytest.mark.parametrize("name", CHECKED)
def test_indices_are_checked(torch, name):
    """PyTorch checks them on request, with the same words."""
    make, wanted = CHECKED[name]
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match=wanted):
        make(torch)
    if not target.STAND_IN:
        with pytest.raises(RuntimeError, match=wanted):
            make(torch)


def test_the_setting_of_checks(torch):
    checks = torch.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    with checks(), checks(False):
        assert not checks.is_enabled()
    checks.enable()
    assert checks.is_enabled()
    checks.disable()
    assert checks()(checks.is_enabled)() and not checks.is_enabled()
    block = checks()
    with block, pytest.raises(RuntimeError, match="already activated"), block:
        pass


def test_what_they_answer(torch, s):
    c = s.to_sparse_csr()
    assert (s.is_sparse, s.is_sparse_csr, c.is_sparse, c.is_sparse_csr) == (True, False, False, True)
    assert s.device == torch.device("cpu") and s.is_cpu and not s.is_meta and not s.is_cuda and s.get_device() == -1
    assert s.stride() == (0, 0) and not s.is_contiguous() and s.storage_offset() == 0 and s.element_size() == 4
    assert torch.is_tensor(s) and isinstance(s, torch.Tensor) and torch.numel(s) == 4 and torch.is_floating_point(s)
    assert s.size() == s.shape == (2, 2) and s.size(-1) == 2 and s.ndim == 2 and len(s) == 2 and s.itemsize == 4
    assert (
        s.to("cpu") is s
        and s.float() is s
        and s.to(torch.float64).dtype == torch.float64
        and c.half().dtype == torch.half
    )
    assert (
        s.type_as(s.double()).dtype == torch.float64 and s.is_same_size(c) and s._base is None and not s.is_inference()
    )
    assert s.coalesce().coalesce() is not None and s.coalesce().indices().tolist() == INDEX
    assert s in [s] and {s: 1}[s] == 1 and hash(s) == hash(s)
    assert s.to(s) is s and s.to(s.double()).dtype == torch.float64 and s.to(torch.ones(1)).layout is torch.sparse_coo
    one = torch.tensor(3.0).to_sparse()
    assert one.item() == 3 and float(one) == 3 and int(one) == 3 and bool(one) and f"{one:.1f}" == "3.0"
    assert (
        torch.zeros_like(s)._nnz() == 0
        and torch.empty_like(s).layout is torch.sparse_coo
        and s.new_zeros(3).shape == (3,)
    )
    assert torch.zeros_like(c).layout is torch.sparse_csr and torch.zeros_like(s, dtype=torch.int8).dtype == torch.int8
    assert s.is_nonzero is not None and torch.result_type(s, 1) == torch.float32 and torch.as_tensor(s) is s


REFUSED = {
    "exp": (lambda t, s: s.exp(), NotImplementedError),
    "function": (lambda t, s: t.cos(s), NotImplementedError),
    "equality": (lambda t, s: s == s, NotImplementedError),
    "comparison": (lambda t, s: s > 1, NotImplementedError),
    "equal": (lambda t, s: t.equal(s, s), NotImplementedError),
    "contains": (lambda t, s: 1.0 in s, NotImplementedError),
    "plus a number": (lambda t, s: s + 1, RuntimeError),
    "plus dense": (lambda t, s: s + t.ones(2, 2), RuntimeError),
    "other size": (lambda t, s: s + t.sparse_coo_tensor(size=(2, 3)), RuntimeError),
    "dense of other size": (lambda t, s: t.ones(2) + s, RuntimeError),
    "over dense": (lambda t, s: s / t.ones(2, 2), RuntimeError),
    "over sparse": (lambda t, s: t.ones(2, 2) / s, RuntimeError),
    "zeroth power": (lambda t, s: s**0, RuntimeError),
    "power of tensors": (lambda t, s: s**s, NotImplementedError),
    "broadcast": (lambda t, s: s * t.ones(3, 2, 2), RuntimeError),
    "shapes of a product": (lambda t, s: s @ t.ones(3, 2), RuntimeError),
    "dtypes of a product": (lambda t, s: s @ t.ones(2, 2).double(), RuntimeError),
    "vector": (lambda t, s: s.mv(t.ones(3)), RuntimeError),
    "reshape": (lambda t, s: s.reshape(4), RuntimeError),
    "view": (lambda t, s: s.view(4), RuntimeError),
    "expand": (lambda t, s: s.expand(2, 2, 2), RuntimeError),
    "slice": (lambda t, s: s[0:1], NotImplementedError),
    "mask": (lambda t, s: s[t.tensor([True, False])], NotImplementedError),
    "index tensor": (lambda t, s: s[t.tensor([0])], NotImplementedError),
    "index": (lambda t, s: s[2], IndexError),
    "dimension": (lambda t, s: s.select(2, 0), IndexError),
    "assignment": (lambda t, s: s.__setitem__(0, 1.0), TypeError),
    "index_select": (lambda t, s: s.index_select(0, t.tensor([2])), IndexError),
    "cat with dense": (lambda t, s: t.cat([s, t.ones(2, 2)]), RuntimeError),
    "cat of other sizes": (lambda t, s: t.cat([s, t.sparse_coo_tensor(size=(2, 3))]), RuntimeError),
    "uncoalesced indices": (lambda t, s: s.indices(), RuntimeError),
    "uncoalesced values": (lambda t, s: s.values(), RuntimeError),
    "rows of coo": (lambda t, s: s.crow_indices(), RuntimeError),
    "columns of csr": (lambda t, s: s.to_sparse_csr().ccol_indices(), RuntimeError),
    "coalesce csr": (lambda t, s: s.to_sparse_csr().coalesce(), RuntimeError),
    "strides of csr": (lambda t, s: s.to_sparse_csr().stride(), RuntimeError),
    "numpy": (lambda t, s: s.numpy(), TypeError),
    "array": (lambda t, s: np.asarray(s), TypeError),
    "dlpack": (lambda t, s: t.from_dlpack(s), (BufferError, TypeError)),
    "list": (lambda t, s: s.tolist(), RuntimeError),
    "item": (lambda t, s: s.item(), RuntimeError),
    "truth": (lambda t, s: bool(s), RuntimeError),
    "number": (lambda t, s: float(s), (ValueError, RuntimeError)),
    "address": (lambda t, s: s.data_ptr(), RuntimeError),
    "storage": (lambda t, s: s.untyped_storage(), NotImplementedError),
    "resize": (lambda t, s: s.resize_(3), RuntimeError),
    "bytes": (lambda t, s: s.nbytes, RuntimeError),
    "fill": (lambda t, s: s.fill_(1.0), NotImplementedError),
    "copy to dense": (lambda t, s: t.ones(2, 2).copy_(s), RuntimeError),
    "copy of dense": (lambda t, s: s.copy_(t.ones(2, 2)), RuntimeError),
    "ones_like": (lambda t, s: t.ones_like(s), NotImplementedError),
    "einsum": (lambda t, s: t.einsum("ij,jk", s, s), RuntimeError),
    "max": (lambda t, s: s.max(), NotImplementedError),
    "softmax": (lambda t, s: t.softmax(s, 0), NotImplementedError),
    "dropout": (lambda t, s: t.nn.functional.dropout(s), NotImplementedError),
    "sum of csr": (lambda t, s: s.to_sparse_csr().sum(0), RuntimeError),
    "dtype of dense": (lambda t, s: s.to_dense(dtype=t.float64), RuntimeError),
    "sparse_dim": (lambda t, s: t.ones(2, 2).to_sparse(3), RuntimeError),
    "no sparse dimension": (lambda t, s: t.ones(2, 2).to_sparse(0), RuntimeError),
    "a vector in rows": (lambda t, s: t.ones(2).to_sparse_csr(), IndexError),
    "mask of another size": (lambda t, s: t.ones(3, 3).sparse_mask(s), RuntimeError),
    "dense mask": (lambda t, s: t.ones(2, 2).sparse_mask(t.ones(2, 2)), NotImplementedError),
    "norm over one": (lambda t, s: s.norm(p=2, dim=0), RuntimeError),
    "reduce": (lambda t, s: t.sparse.mm(s.to_sparse_csr(), t.ones(2, 2), "foo"), RuntimeError),
    "softmax of integers": (lambda t, s: t.sparse.softmax(s.long(), 0), NotImplementedError),
    "sum twice": (lambda t, s: t.sparse.sum(s, (0, 0)), RuntimeError),
    "out of another layout": (lambda t, s: t.mm(s, t.ones(2, 2), out=t.sparse_coo_tensor(size=(2, 2))), RuntimeError),
    "resize to smaller": (lambda t, s: s.sparse_resize_((1, 2), 2, 0), RuntimeError),
    "resize to more": (lambda t, s: s.sparse_resize_((2, 2, 2), 3, 0), RuntimeError),
    "batch": (lambda t, s: t.utils.data.default_collate([s, s]), RuntimeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_they_refuse(torch, s, name):
    if target.STAND_IN and name == "broadcast":
        pytest.skip("PyTorch expands the sparse factor")
    call, error = REFUSED[name]
    before = (s._indices().tolist(), s._values().tolist())
    with pytest.raises(error):
        call(torch, s)
    assert (s._indices().tolist(), s._values().tolist()) == before and s.shape == (2, 2)


@own
def test_errors_say_what_to_do(torch, s):
    with pytest.raises(
        NotImplementedError, match=r"^exp: not implemented for sparse_coo tensors. Hint: call .to_dense\(\).$"
    ):
        s.exp()
    with pytest.raises(NotImplementedError, match="^eq: not implemented for sparse_csr tensors"):
        _ = s.to_sparse_csr() == 1
    for refused in (
        lambda: s.to_sparse_bsr((1, 1)),
        lambda: torch.sparse_bsc_tensor(),
        lambda: torch.sparse_compressed_tensor([0], [], [], layout=torch.sparse_bsr),
    ):
        with pytest.raises(NotImplementedError, match="no tensors of the layout sparse_bs[rc]; expected sparse_coo"):
            refused()
    with pytest.raises(TypeError, match="no constructor"):
        type(s)(2, 3)


@own
def test_each_rule_is_of_an_op(torch, s):
    rules = __import__(f"{torch.__name__}.sparse._rules", fromlist=["_rules"])
    named = {
        *rules._RULES,
        *rules._REFLECTED,
        *rules._ANSWERED,
        *rules._elementwise.LINEAR,
        *rules._elementwise.KEEPS_ZERO,
    }
    assert [n for n in named if n not in torch._C.ops and not hasattr(torch.Tensor, n)] == []
    assert torch.permute(input=s, dims=(1, 0)).shape == (2, 2) and torch.cat(tensors=[s, s], dim=1).shape == (2, 4)
    assert torch.add(input=s, other=s).layout is torch.mul(other=s, input=s).layout is torch.sparse_coo
    assert torch.transpose(input=s, dim0=0, dim1=1).shape == (2, 2) and torch.sum(input=s, dim=0).shape == (2,)
    d = torch.ones(2, 2)
    for call in (lambda: d.index_select(0, s), lambda: torch.zeros(2).new_zeros(s), lambda: torch.where(d > 0, d, s)):
        with pytest.raises((NotImplementedError, TypeError)):
            call()


@own
def test_no_attribute_reads_the_body(torch, s):
    """Each attribute of tensors is an op, which goes through the table, or one that sparse tensors answer."""
    known = set(
        "H T mH mT real imag dtype itemsize ndim shape _cdata dim element_size is_complex is_floating_point is_signed ndimension "
        "nelement numel size is_ipu is_maia is_mkldnn is_mps is_mtia is_nested is_quantized is_vulkan is_xla is_xpu "
        "_make_subclass _make_wrapper_subclass __torch_dispatch__ __array_priority__ __array_wrap__ __contains__ __dir__ "
        "__dlpack_device__ __iter__ __len__ __reversed__ "
        "__setstate__ _is_view _register allclose hash_tensor slice_inverse equal cuda gpu get_device is_conj is_distributed is_neg is_nonzero is_pinned "
        "is_same_size new_tensor pin_memory record_stream resolve_conj resolve_neg square_ to_dense to_mkldnn to_sparse to_sparse_bsc "
        "to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr sparse_mask smm sspaddmm ccol_indices col_indices crow_indices "
        "row_indices stft istft lu cholesky eig lstsq qr solve symeig dequantize int_repr q_scale q_zero_point qscheme q_per_channel_scales "
        "q_per_channel_zero_points q_per_channel_axis".split()
    )
    answered = {
        name for base in type(s).__mro__ if base.__module__.startswith("rustgrad.sparse") for name in vars(base)
    }
    left = []
    for name, value in vars(torch.Tensor).items():
        slot = type(value).__name__ == "wrapper_descriptor"
        if name in known | answered or slot or hasattr(object, name) or type(value).__name__ == "Op":
            continue
        left.append(name)
    assert left == []


@own
def test_copies(torch, s):
    for made in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone(), s.detach(), s.data):
        assert repr(made) == repr(s) and type(made) is type(s)
    c = s.to_sparse_csr()
    assert repr(pickle.loads(pickle.dumps(c))) == repr(copy.deepcopy(c)) == repr(c)
    assert copy.copy(s)._values().data_ptr() == s._values().data_ptr() == s.detach()._values().data_ptr()
    assert copy.deepcopy(s)._values().data_ptr() != s._values().data_ptr()
    for name in ("strided", "sparse_coo", "sparse_csr"):
        layout = getattr(torch, name)
        assert pickle.loads(pickle.dumps(layout)) is copy.deepcopy(layout) is layout


@own
def test_writing_in_place(torch, s):
    value = s._values()
    assert s.mul_(2) is s and value.tolist() == [6, 8]
    s.neg_().div_(2)
    assert value.tolist() == [-3, -4]
    s *= -1
    s += s
    assert s.to_dense().tolist() == [[0, 6], [8, 0]]
    s.add_(torch.eye(2).to_sparse(), alpha=2)
    assert s.to_dense().tolist() == [[2, 6], [8, 2]]
    assert s.t_().to_dense().tolist() == [[2, 8], [6, 2]]
    s.copy_(torch.eye(2).to_sparse())
    assert s.to_dense().tolist() == [[1, 0], [0, 1]] and s.is_coalesced()
    assert s.sparse_resize_((3, 4), 2, 0).shape == (3, 4) and s.to_dense()[2:].sum() == 0
    assert s.sparse_resize_and_clear_((2, 2, 2), 1, 2).dense_dim() == 2 and s._nnz() == 0
    assert torch.eye(2).to_sparse().zero_()._nnz() == 0
    d = torch.ones(2, 2)
    assert d.add_(torch.eye(2).to_sparse(), alpha=2) is d and d.tolist() == [[3, 1], [1, 3]]
    d -= torch.eye(2).to_sparse()
    d += torch.eye(2).to_sparse_csr()
    assert d.tolist() == [[3, 1], [1, 3]]
    d.mul_(torch.eye(2).to_sparse())
    assert d.tolist() == [[3, 0], [0, 3]]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, 2, dtype=torch.int64).add_(torch.eye(2).to_sparse())
    out = torch.sparse_coo_tensor(size=(2, 2))
    assert torch.add(
        torch.eye(2).to_sparse(), torch.eye(2).to_sparse(), out=out
    ) is out and out.to_dense().tolist() == [[2, 0], [0, 2]]
    dense = torch.empty(0)
    assert torch.mm(out, torch.ones(2, 1), out=dense) is dense and dense.tolist() == [[2], [2]]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_ops_that_make_zeros_take_a_layout(torch, layout):
    kept = getattr(torch, layout)
    dense = torch.ones(2, 3, dtype=torch.float64)
    sparse = dense.to_sparse()
    made = [
        torch.zeros(2, 3, layout=kept, dtype=torch.float64),
        torch.zeros((2, 3), layout=kept, dtype=torch.float64, device="cpu"),
        torch.empty(size=(2, 3), layout=kept, dtype=torch.float64),
        torch.zeros_like(dense, layout=kept),
        torch.zeros_like(sparse, layout=kept),
        dense.new_zeros(2, 3, layout=kept),
        dense.new_empty((2, 3), layout=kept),
        sparse.new_zeros((2, 3), layout=kept),
    ]
    if not target.STAND_IN:
        made.append(torch.empty_like(dense, layout=kept))
    for t in made:
        assert t.layout is kept and t.dtype == torch.float64 and tuple(t.shape) == (2, 3) and t._nnz() == 0
        assert t.to_dense().tolist() == [[0.0] * 3] * 2
    assert torch.zeros(2, 3, layout=kept).dtype == torch.get_default_dtype()
    assert torch.zeros(2, 3, layout=kept, requires_grad=True).requires_grad
    for call in (torch.ones, torch.rand, lambda *size, layout: torch.full(size, 1.0, layout=layout)):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call(2, 3, layout=kept)
    with pytest.raises(TypeError):
        torch.zeros("2", layout=kept)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_tensor_copies_a_sparse_tensor(torch, layout):
    source = torch.eye(3).to_sparse(layout=getattr(torch, layout))
    with pytest.warns(UserWarning, match="copy construct"):
        copy = torch.tensor(source, dtype=torch.float64, requires_grad=True)
    assert copy.layout is source.layout and copy.dtype == torch.float64 and copy.requires_grad and copy.is_leaf
    assert torch.equal(copy.detach().to_dense(), torch.eye(3, dtype=torch.float64))
    copy.detach().values().fill_(5) if layout == "sparse_csr" else copy.detach()._values().fill_(5)
    assert torch.equal(source.to_dense(), torch.eye(3))


def test_a_sparse_number_scales(torch, s):
    two = torch.tensor(2.0).to_sparse()
    for product in (s * two, two * s):
        assert product.layout == s.layout and torch.equal(product.to_dense(), s.to_dense() * 2)
    assert torch.equal((two * two).to_dense(), torch.tensor(4.0))


def test_empty_like_of_a_sparse_tensor_takes_no_memory_format(torch):
    with pytest.raises(RuntimeError, match="only supported by strided tensors"):
        torch.empty_like(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)
