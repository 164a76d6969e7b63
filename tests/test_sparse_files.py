"""Sparse tensors in checkpoints: files of PyTorch, files for it, and files that describe none."""

import base64
import io
import zlib

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad checks where PyTorch does not")
INDEX, VALUE = [[0, 1, 1], [1, 0, 0]], [3.0, 4.0, -1.0]
PLAIN = [[0, 3], [3, 0]]
# Written by PyTorch 2.15: tensors of four layouts, one without sorted indices, and one that requires grad.
RECORDED = """
eNrNmE1wU1UYhk+SkqZpaVKoFpC/omhQaPOfhr+GAAG9KOUgGBGJt8klCVyafslpsShSxRspooI/gIrITh3duJKdLNzpQmbQGWecccHKBeNSxxlHz8lJ0ntP
SAqhC28nk7a5z/u975fT75x0SLK0IGSzoZrLieYhOZ/MZMeV/pRM5L7Rw2os2on2Ga5J83FArriFAslcDkxJkqNMX2KMZNWCPZFXhseyaipRGJXzBSVBlJFC
Lm8Hc/m2gpLPymr2mEyyuRF7Iq2QhCpP5MaIHSxxJ9Us38ZpVqBFgzkYrK46dXiBxLjXDq0uV7yVShTonXJaARtH7DtyI+nd/Hd2aIub6C1usPMEo2PQLlkJ
dOySkGSWLEWYK1kkUxE6p5LJnKoqSWa0YN+ZTyl5JbUlm6ROHaswOAl0YZiXoUUzlUIxNSeTaqX5pUoe6M60SxYC97EKFg3ul0wa9ExlmMgCAgsxLCrju7PH
KPYAtWEuwmINlmBYOkVgWRGWY+iNt5U6LqtKIamkYEXGnLG6ePkMD+WFBzOlMA/xMFRlJQ/zMC/3CAEXhlVliPvzwaPc32MlSIPVzN8aDvQR6MfgzpQ9eTTw
YvCdIuAvQgBDkPewkIcQdXO794++NKBBGMNao1U/rONV15e7soFV3cirDhKIYNhkAAIQ5dk276KRqM0tDNjKgRiBbRi2G3IF4XFe4YlyLokBOzjwJIGnMOys
5BrSYBcGTGB3EZ7GsKccKwl768VKwjMaxDE8a4wVgn286HPlWPtZ0ed50QMEEhheMAADIPNYw+VYSQakOKAQOIghbYgVhgyvkC3HOsSAwxxQCRzBMFKJldNg
FAMQyBehgIHErVQgMzGcz6ZgzLh8zGylumGcapsJHGXaJibxIlWi62eC6x8j8BKGlw1rfrusHqwu+eNcyAOv8FQnqn9Vk3whvsqFXiNwEsPrJaP0RU2DIoY3
6Fo/VYQpDKfjdEKhdF5OwZu38emFM1z+rar821z+HS5/lsA5DO9WG1eifPAe79z75ffmA9a585y4QOAihg8rnftIg48xXKKGPinCZQyfjvUNSa22nuKp4T+p
NfYYqjtGe1BLdYz2Hczlj8gkMa7kC3SOxKLUCFP65o9fT7K3kz3qKy1CoWml8lRL0OmZHjmijJBY1CeM5ju6gn5mYPAo/M7aYm5ooAsNVg0MTxAlx6ZgLLqu
mbqVS80SoirMg7bh5kK2JK0NPXSijYZdqd8di669BwMVXVOdZ/FiThObfGvcbNuYwWm30aknFnWi2vqRCEKT7PEt03Zcvbmkg9IdM2gPGLW9sagfzUb+ej/b
2uztHXM7Hcyjs/sWaiK/r37+SGR07ZYo0z79N17RRH7/bOU3697nH/af2bmAfr9gBi+rjV4CsagLNVt/2XVH7w1H7xWx/07PDafnR2dpXHz3xeZfmuh/sFH/
3b2DSaa99cCFVU30P/Q/6v/AvfT/2qGvvxw+Ubv+Iyr/PfP10z+2v5rof7hR/yuZb53dq87cf4duK+Czxd3k/BfzMw/fS13LnaVPAI09+AQPdMD1360HtH76
i9W+8vNXF5vJ752l/LM3/x1ovuCRDkAHmpX5r89fPUw0ld9nZ1WvX07vmXn/X4q80weQUiTD57dENhWL9t2lCU/A6/a4A6GwNxj2uYM+fyA84A4E/MGgN+j3
+z2hkNsfCoVLc++zlTv+dVEfrpJLU2lUVHzqD2POGufi51iR1h/Aegzktjmo3vFNFNEfohYZRM7pRWpObqKO/iDUZdCZZ0W1BzAR16/OTgN+3oqEs5PI6lef
kY20CqxHZPWnAiN7SWS9Iqvf9YW6NoH1iax+lxDqiqxfZPU7qZF1tQlsQGT1O6WRvSaywTv3vNgusCGR1e8+RvZzkR0QWf3uIvS5XWDDIqvfFRzGPousp2Zh
6ce6EV7eIcKeRitaqFwDexstaSMcmSvCNWtLPxeFyjq4zjzQj6ulxr/jTjTDIB2SrNbVlbFrWVMlu4Xn31r489XOyvZkZf/zQhfmT29jQ9IcK2e6S/fze/8D
VtI5hg==
"""


@pytest.fixture
def s(torch):
    return torch.sparse_coo_tensor(INDEX, VALUE, (2, 2))


def saved(torch, obj, **kwargs):
    file = io.BytesIO()
    torch.save(obj, file, **kwargs)
    file.seek(0)
    return file


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_of_pytorch(torch, weights_only):
    file = io.BytesIO(zlib.decompress(base64.b64decode(RECORDED)))
    read = torch.load(file, weights_only=weights_only)
    assert {k: v.layout for k, v in read.items()} == {
        "coo": torch.sparse_coo,
        "coalesced": torch.sparse_coo,
        "csr": torch.sparse_csr,
        "csc": torch.sparse_csc,
        "hybrid": torch.sparse_coo,
        "grad": torch.sparse_coo,
    }
    hybrid = read.pop("hybrid")
    assert hybrid.dtype == torch.float16 and hybrid.dense_dim() == 1 and hybrid.to_dense().tolist() == [[1, 1, 1]] * 2
    assert all(v.to_dense().tolist() == PLAIN for v in read.values())
    assert (
        not read["coo"].is_coalesced() and read["coo"]._indices().tolist() == INDEX and read["coalesced"].is_coalesced()
    )


@pytest.mark.parametrize("new", [True, False])
def test_files_both_ways(torch, s, new):
    module = torch.nn.Module()
    module.register_buffer("adjacency", s)
    module.weight = torch.nn.Parameter(s.coalesce())
    written = {
        "state": module.state_dict(),
        "csr": s.to_sparse_csr(),
        "layout": torch.sparse_csc,
        "shared": [s, s._values()],
    }
    read = torch.load(saved(torch, written, _use_new_zipfile_serialization=new))
    assert repr(read["state"]["adjacency"]) == repr(s) and read["state"]["weight"].is_coalesced()
    assert repr(read["csr"]) == repr(s.to_sparse_csr()) and read["layout"] is torch.sparse_csc
    assert read["shared"][0]._values().data_ptr() == read["shared"][1].data_ptr()
    module.load_state_dict(read["state"])
    whole = torch.load(saved(torch, torch.nn.Parameter(s)), weights_only=True)
    assert isinstance(whole, torch.nn.Parameter) and whole.requires_grad and whole.layout is torch.sparse_coo


@own
def test_files_with_indices_that_do_not_fit(torch, s):
    error = torch.serialization.CheckpointError
    for spoil in (lambda: s._indices().fill_(7), lambda: s._indices().fill_(-1)):
        spoil()
        for obj in (s, {"a": [s]}):
            with pytest.raises(error, match="size is inconsistent with indices|negative index"):
                torch.load(saved(torch, obj))
    for part, number in (("crow_indices", 9), ("crow_indices", -3), ("col_indices", 2), ("col_indices", -1)):
        c = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2))
        getattr(c, part)()[1] = number
        with pytest.raises(error, match="is not satisfied"):
            torch.load(saved(torch, c))


@own
def test_files_that_describe_no_sparse_tensor(torch):
    rebuild = __import__(f"{torch.__name__}._utils", fromlist=["_utils"])._rebuild_sparse_tensor

    class Made:
        def __init__(self, *args):
            self.args = args

        def __reduce__(self):
            return rebuild, self.args

    index, value = torch.tensor([[0, 1]]), torch.ones(2)
    for layout, data in (
        (torch.sparse_coo, (index, [1.0, 2.0], (2,), False)),
        (torch.sparse_coo, (index.double(), value, (2,), False)),
        (torch.sparse_coo, (index, value, (2, "a"), False)),
        (torch.sparse_coo, (index, value, 2, False)),
        (torch.sparse_coo, (index, value)),
        (torch.sparse_coo, (index, value, (2,), True, 1)),
        (torch.sparse_coo, (index.flip(1), value, (2,), True)),
        (torch.sparse_coo, None),
        (torch.sparse_bsr, (index, index, value, (2,))),
        (torch.strided, (index, value, (2,))),
        ("sparse_coo", (index, value, (2,))),
        (torch.sparse_csr, (index, value, (2,))),
        (torch.sparse_csr, (index, index, index, index)),
    ):
        with pytest.raises(torch.serialization.CheckpointError):
            torch.load(saved(torch, Made(layout, data)))
