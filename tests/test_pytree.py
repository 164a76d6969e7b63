"""`utils._pytree`: flattening and rebuilding containers, structures, paths, and their text."""

import dataclasses
import enum
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

Point = namedtuple("Point", "x y")
Named = namedtuple("Named", "a")


@pytest.fixture
def pytree(torch):
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def nest():
    return {
        "b": [1, (2, 3)],
        "a": Point(4, None),
        "c": OrderedDict(z=5),
        "d": defaultdict(int, {"q": 6}),
        "e": deque([7], maxlen=3),
        "f": (),
    }


TEXT = """\
TreeSpec(dict, ['b', 'a', 'c', 'd', 'e', 'f'], [TreeSpec(list, None, [*,
    TreeSpec(tuple, None, [*,
      *])]),
  TreeSpec(namedtuple, <class 'test_pytree.Point'>, [*,
    *]),
  TreeSpec(OrderedDict, ['z'], [*]),
  TreeSpec(defaultdict, [<class 'int'>, ['q']], [*]),
  TreeSpec(deque, 3, [*]),
  TreeSpec(tuple, None, [])])"""


def test_flatten_and_back(pytree):
    leaves, spec = pytree.tree_flatten(nest())
    assert leaves == [1, 2, 3, 4, None, 5, 6, 7] == pytree.tree_leaves(nest()) == list(pytree.tree_iter(nest()))
    again = pytree.tree_unflatten(leaves, spec)
    assert again == nest() and [type(v) for v in again.values()] == [type(v) for v in nest().values()]
    assert again["e"].maxlen == 3 and again["d"].default_factory is int
    assert (
        repr(spec) == TEXT
        and spec == pytree.tree_structure(nest())
        and hash(spec) == hash(pytree.tree_structure(nest()))
    )
    assert (spec.num_leaves, spec.num_children, spec.num_nodes, spec.type) == (8, 6, 16, dict)
    assert (
        spec != pytree.tree_structure([1]) and spec.child(1).type is namedtuple and spec.children()[5].num_leaves == 0
    )
    ordered = str(OrderedDict(z=0)).replace("0", "*")  # Python 3.12 prints it in another form
    assert pytree.treespec_pprint(spec) == (
        f"{{'b': [*, (*, *)], 'a': Point(x=*, y=*), 'c': {ordered}, "
        "'d': defaultdict(<class 'int'>, {'q': *}), 'e': deque([*], maxlen=3), 'f': ()}"
    )
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 8 items"):
        pytree.tree_unflatten([1], spec)
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.tree_unflatten([1], 3)


def test_leaves(torch, pytree):
    assert pytree.tree_is_leaf(1) and pytree.tree_is_leaf(None) and not pytree.tree_is_leaf(())
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    values = torch.max(torch.ones(2, 2), 0)
    assert [type(v) for v in pytree.tree_leaves(values)] == [torch.Tensor] * 2
    assert type(pytree.tree_map(lambda x: x, values)) is type(values)
    assert pytree.arg_tree_leaves(1, [2], a={"b": 3}) == [1, 2, 3]


def test_map(pytree):
    assert pytree.tree_map(lambda a, b: a + b, [1, {"k": 2}], [10, OrderedDict(k=20)]) == [11, {"k": 22}]
    assert pytree.tree_map(lambda a, b: (a, b), [1], [[2, 3]]) == [(1, [2, 3])]
    seen = []
    tree = [1, (2,)]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2]
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a", 2.0]) == [-1, "a", 2.0]
    assert pytree.tree_map_only((int, float), str, [1, "a", 2.0]) == ["1", "a", "2.0"]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, ["a", "b"]) == ["A", "b"]
    assert pytree.tree_all(lambda x: x > 0, [1, 2]) and not pytree.tree_any(lambda x: x > 2, [1, 2])
    assert pytree.tree_any_only(int, lambda x: x > 1, ["a", 2]) and pytree.tree_all_only(int, bool, ["", 1])
    for tree, message in [
        ((1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>"),
        ([1, 2, 3], "Node arity mismatch; expected 2, but got 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            pytree.tree_map(lambda a, b: a, [1, 2], tree)
    with pytest.raises(ValueError, match=r"Node keys mismatch; missing key\(s\): \{'a'\}; extra key\(s\): \{'b'\}"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    assert pytree._broadcast_to_and_flatten([1, 2], pytree.tree_structure([1, [2, 3]])) == [1, 2, 2]
    assert pytree._broadcast_to_and_flatten([1], pytree.tree_structure([1, 2])) is None


def test_paths(pytree):
    pairs, spec = pytree.tree_flatten_with_path(nest())
    text = ["['b'][0]", "['b'][1][0]", "['b'][1][1]", "['a'].x", "['a'].y", "['c']['z']", "['d']['q']", "['e'][0]"]
    assert [pytree.keystr(path) for path, _ in pairs] == text and spec == pytree.tree_structure(nest())
    assert all(pytree.key_get(nest(), path) == leaf for path, leaf in pairs)
    assert pytree.tree_map_with_path(lambda p, x: pytree.keystr(p) * x, {"a": [1, 2]}) == {
        "a": ["['a'][0]", "['a'][1]['a'][1]"]
    }


class Box:
    def __init__(self, *items):
        self.items = items


@dataclasses.dataclass
class Config:
    weight: object
    bias: object = None
    note: str = "none"


def test_registered_classes(pytree):
    if Box not in pytree.SUPPORTED_NODES:
        pytree.register_pytree_node(Box, lambda b: (list(b.items), len(b.items)), lambda items, _: Box(*items))
        pytree.register_dataclass(Config, field_names=["weight", "bias"], drop_field_names=["note"])
    assert pytree.tree_map(lambda x: x + 1, Box(1, [2])).items == (2, [3])
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Box, None, None)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Box(1))
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        pytree.treespec_dumps(pytree.tree_structure(Box(1)))
    with pytest.raises(ValueError, match="field_names does not include all dataclass fields"):
        pytree.register_dataclass(Config, field_names=["weight"])
    made = pytree.tree_map(lambda x: x * 2, Config(1, note="lost"))
    assert made == Config(2) and [pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(made)] == [".weight"]


def test_text(pytree):
    tree = {"a": [1, OrderedDict(z=1), defaultdict(int, {"q": 1}), deque([1], maxlen=3)], "b": ()}
    spec = pytree.tree_structure(tree)
    text = pytree.treespec_dumps(spec)
    assert text.startswith(
        '[1, {"type": "builtins.dict", "context": "[\\"a\\", \\"b\\"]", "children_spec": [{"type": "bu'
    )
    assert pytree.treespec_loads(text) == spec
    with pytest.raises(NotImplementedError, match="Can't serialize TreeSpec of namedtuple class"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    if not getattr(Named, "known", False):
        pytree._register_namedtuple(Named, serialized_type_name="test.Named")
        Named.known = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pytree.treespec_loads(pytree.treespec_dumps(pytree.tree_structure(Named(1)))).type is namedtuple


def test_paths_of_immutable_collections(torch, pytree):
    fx = importlib.import_module(f"{torch.__name__}.fx.immutable_collections")
    tree = fx.immutable_dict(a=fx.immutable_list([1, 2]))
    found, spec = pytree.tree_flatten_with_path(tree)
    assert [(pytree.keystr(path), leaf) for path, leaf in found] == [("['a'][0]", 1), ("['a'][1]", 2)]
    assert spec == pytree.tree_structure(tree)


def test_members_of_enums_in_text(pytree):
    class Kind(enum.Enum):
        A = 1

    assert '"1"' in pytree.treespec_dumps(pytree.TreeSpec(dict, Kind.A, [pytree.LeafSpec()]))


def test_the_deprecated_registration_replaces(pytree):
    class Pair:
        pass

    with pytest.warns(FutureWarning, match="_register_pytree_node"):
        pytree._register_pytree_node(Pair, lambda p: ([1], None), lambda xs, _: Pair())
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="already registered"):
        pytree._register_pytree_node(Pair, lambda p: ([2], None), lambda xs, _: Pair())
    assert pytree.tree_leaves(Pair()) == [2]
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, lambda p: ([3], None), lambda xs, _: Pair())
