"""Bad input: the exception's type, and that its text names the argument and what is allowed. SPDX-License-Identifier: MIT"""
import numpy as np
import pytest
from reference import BF16, DTYPES

import posenc

SPEC = posenc.RopeSpec(8)
TURN = posenc.rotation(SPEC, range(4))
X = np.zeros((3, 4, 8), np.float32)
TABLE = np.ones((4, 4), np.float32)


def refused(kind, words, call, *arguments, **named):
    with pytest.raises(kind) as caught:
        call(*arguments, **named)
    text = str(caught.value)
    assert type(caught.value) is kind
    for word in words.split("|"):
        assert word in text, f"{word!r} is not in: {text}"


@pytest.mark.parametrize("kind, words, named", [
    (TypeError, "head_dim|'8'|integer", {"head_dim": "8"}),
    (TypeError, "head_dim|8.0", {"head_dim": 8.0}),
    (TypeError, "head_dim|True", {"head_dim": True}),
    (ValueError, "head_dim|1|from 2 to", {"head_dim": 1}),
    (ValueError, "head_dim|from 2 to", {"head_dim": 1 << 70}),
    (ValueError, "rotary_dim|10", {"rotary_dim": 10}),
    (ValueError, "rotary_dim|3|even", {"rotary_dim": 3}),
    (ValueError, "rotary_dim|0", {"rotary_dim": 0}),
    (ValueError, "rotary_start", {"rotary_start": 8}),
    (ValueError, "rotary_start|-1", {"rotary_start": -1}),
    (ValueError, "base|0", {"base": 0}),
    (ValueError, "base|-1", {"base": -1.0}),
    (ValueError, "base|nan", {"base": float("nan")}),
    (ValueError, "base|inf", {"base": float("inf")}),
    (TypeError, "base|'10000'", {"base": "10000"}),
    (ValueError, "pairing|neox_style", {"pairing": "neox_style"}),
    (ValueError, "pairing|2j", {"pairing": "alternate"}),
    (TypeError, "pairing|1", {"pairing": 1}),
    (TypeError, "scaling|list", {"scaling": []}),
    (ValueError, "rope_type", {"scaling": {"rope_type": "stretch"}}),
    (ValueError, "factor", {"scaling": {"rope_type": "linear"}}),
    (ValueError, "factor", {"scaling": {"rope_type": "linear", "factor": float("nan")}}),
    (ValueError, "factor|0.5", {"scaling": {"rope_type": "linear", "factor": 0.5}}),
    (TypeError, "scaling|JSON", {"scaling": {"rope_type": object()}}),
    (ValueError, "JSON", {"scaling": "{"}),
    (ValueError, "rope_theta", {"scaling": {"rope_type": "default", "rope_theta": 5.0}, "base": 6.0}),
    (ValueError, "max_positions|0", {"max_positions": 0}),
    (TypeError, "axes|tuple", {"axes": (1, 2)}),
    (ValueError, "sections", {"axes": posenc.Axes(2, (1, 2))}),
    (ValueError, "inv_freq", {"inv_freq": [1.0, 2.0]}),
    (ValueError, "inv_freq", {"inv_freq": [1.0, 2.0, np.inf, 1.0]}),
    (ValueError, "inv_freq|2", {"inv_freq": np.ones((2, 2))}),
    (ValueError, "inv_freq|scaling", {"inv_freq": [1.0] * 4, "scaling": {"rope_type": "default"}}),
    (ValueError, "dynamic|'other'", {"dynamic": "other"}),
])
def test_specs(kind, words, named):
    refused(kind, words, posenc.RopeSpec, **{"head_dim": 8, **named})


def test_axes():
    refused(ValueError, "count|9", posenc.Axes, 9)
    refused(ValueError, "order|'rows'", posenc.Axes, 2, (1, 1), "rows")
    refused(ValueError, "exponents", posenc.Axes, 2, (1, 1), exponents="odd")
    refused(TypeError, "sections", posenc.Axes, 2, (1.5, 1))


@pytest.mark.parametrize("kind, words, positions", [
    (TypeError, "positions|5|range(5)|[5]", 5),
    (TypeError, "positions|single", np.int64(5)),
    (TypeError, "positions|bool", [True, False]),
    (TypeError, "positions|<U1", ["1"]),
    (TypeError, "positions", None),
    (TypeError, "positions|complex", [1j]),
    (ValueError, "positions|64|fit", np.array([1 << 63], np.uint64)),
    (ValueError, "positions", [1 << 41]),
    (ValueError, "positions", [float("nan")]),
    (ValueError, "positions", [float("inf")]),
    (ValueError, "positions|(2, 2, 2)", np.zeros((2, 2, 2), int)),
    (TypeError, "positions", [[1, 2], [3]]),
    (TypeError, "positions|masked", np.ma.array([1, 2])),
])
def test_positions(kind, words, positions):
    if isinstance(positions, list) and positions == [[1, 2], [3]]:
        kind = TypeError
    refused(kind, words, posenc.rotation, SPEC, positions)


@pytest.mark.parametrize("kind, words, named", [
    (TypeError, "spec|dict", {"spec": {}}),
    (ValueError, "mode|'fast'|'exact'", {"mode": "fast"}),
    (TypeError, "dtype|float16", {"dtype": "float16"}),
    (TypeError, "dtype|int32", {"dtype": np.int32}),
    (ValueError, "dtype|float64|float32", {"mode": "float32", "dtype": "float64"}),
    (ValueError, "threads|0", {"threads": 0}),
    (TypeError, "threads|2.0", {"threads": 2.0}),
    (ValueError, "seq_len|0", {"seq_len": 0}),
    (ValueError, "seq_len", {"spec": SPEC.frequencies(), "seq_len": 5}),
])
def test_rotations(kind, words, named):
    refused(kind, words, posenc.rotation, **{"spec": SPEC, "positions": range(4), **named})


def test_positions_of_several_axes():
    spec = posenc.RopeSpec(8, axes=posenc.Axes(2, (2, 2)))
    refused(ValueError, "positions|(2, tokens)|2 axes", posenc.rotation, spec, range(4))
    refused(ValueError, "positions|(3, 4)", posenc.rotation, spec, np.zeros((3, 4), int))


@pytest.mark.parametrize("kind, words, named", [
    (TypeError, "sin|missing", {"sin": None}),
    (TypeError, "sin|given", {"layout": "pairs"}),
    (ValueError, "sin|(4, 3)|(4, 4)", {"sin": TABLE[:, :3]}),
    (TypeError, "sin|float64|float32", {"sin": TABLE.astype(float)}),
    (TypeError, "cos|int64", {"cos": np.ones((4, 4), int)}),
    (ValueError, "cos|(4,)", {"cos": TABLE[0]}),
    (ValueError, "layout|'both'", {"layout": "both"}),
    (ValueError, "cos|odd", {"cos": TABLE[:, :3], "sin": TABLE[:, :3], "layout": "full-half"}),
    (ValueError, "rotary_start", {"rotary_start": -1}),
    (ValueError, "attention_factor|0", {"attention_factor": 0}),
    (ValueError, "attention_factor|nan", {"attention_factor": float("nan")}),
])
def test_own_tables(kind, words, named):
    refused(kind, words, posenc.Rotation, **{"cos": TABLE, "sin": TABLE, **named})


READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False
MEMORY = np.zeros(400, np.float32)


@pytest.mark.parametrize("kind, words, named", [
    (TypeError, "rotation|ndarray|posenc.Rotation", {"rotation": TABLE}),
    (TypeError, "x|int64|float32", {"x": X.astype(int)}),
    (TypeError, "x|complex64", {"x": X.astype(np.complex64)}),
    (TypeError, "x|>f4|byte order", {"x": X.astype(">f4")}),
    (TypeError, "x|uint16", {"x": X.astype(np.uint16)}),
    (TypeError, "x|object", {"x": X.astype(object)}),
    (TypeError, "x|bool", {"x": X.astype(bool)}),
    (TypeError, "x|datetime", {"x": X.astype("datetime64[s]")}),
    (TypeError, "x|str", {"x": "text"}),
    (TypeError, "x|None", {"x": None}),
    (TypeError, "x|masked", {"x": np.ma.array(X)}),
    (ValueError, "x|axis|head_dim", {"x": np.zeros((), np.float32)}),
    (ValueError, "x|16|head_dim|8", {"x": np.zeros((3, 4, 16), np.float32)}),
    (ValueError, "rows|4|5", {"x": np.zeros((3, 5, 8), np.float32)}),
    (ValueError, "x|17 axes|at most 16", {"x": np.zeros((1,) * 15 + (4, 8), np.float32)}),
    (ValueError, "x|0 arrays", {"x": ()}),
    (ValueError, "x|9 arrays|8", {"x": (X,) * 9}),
    (TypeError, "x|float64", {"x": (X, X.astype(float))}),
    (ValueError, "x|aligned", {"x": np.frombuffer(bytes(3 * 4 * 8 * 4 + 1), np.uint8)[1:].view(np.float32)
                               .reshape(3, 4, 8)}),
    (ValueError, "x|stride", {"x": np.zeros((3, 4, 8), [("a", np.float32), ("b", np.uint8)])["a"]}),
    (ValueError, "axes|3|2", {"axes": "tokens,head_dim"}),
    (ValueError, "axes|'rows'", {"axes": "rows,tokens,head_dim"}),
    (ValueError, "axes|head_dim once", {"axes": "heads,tokens,heads"}),
    (ValueError, "axes|tokens at most once", {"axes": "tokens,tokens,head_dim"}),
    (TypeError, "axes|3", {"axes": 3}),
    (ValueError, "inverse|backward", {"inverse": True, "backward": True}),
    (ValueError, "pairing|'both'", {"pairing": "both"}),
    (ValueError, "output_pairing|'both'", {"output_pairing": "both"}),
    (ValueError, "stores|'fast'", {"stores": "fast"}),
    (ValueError, "threads|-1", {"threads": -1}),
    (TypeError, "dtype|int8", {"dtype": "int8"}),
    (TypeError, "dtype|float16|float32", {"dtype": "float16", "out": X.copy()}),
    (ValueError, "out|read-only", {"out": READ_ONLY}),
    (ValueError, "out|shape", {"out": np.zeros((3, 4, 9), np.float32)}),
    (ValueError, "out|shape", {"out": np.zeros((4, 8), np.float32)}),
    (TypeError, "out|int32", {"out": X.astype(np.int32)}),
    (TypeError, "out|list", {"out": [1]}),
    (TypeError, "out|tuple", {"x": (X, X), "out": X}),
    (ValueError, "out", {"out": np.lib.stride_tricks.as_strided(X.copy(), X.shape, (0, 32, 4))}),
    (ValueError, "out", {"x": MEMORY[:96].reshape(3, 4, 8), "out": MEMORY[8:104].reshape(3, 4, 8)}),
    (ValueError, "out|item", {"x": (X, X), "out": (MEMORY[:96].reshape(3, 4, 8), MEMORY[:96].reshape(3, 4, 8))}),
    (TypeError, "row_ids|float64|integers", {"row_ids": [0.0, 1, 2, 3]}),
    (TypeError, "row_ids|bool", {"row_ids": [True, False, True, True]}),
    (ValueError, "row_ids|4|row of the table", {"row_ids": [0, 1, 2, 4]}),
    (ValueError, "row_ids|-1", {"row_ids": [0, 1, 2, -1]}),
    (ValueError, "row_ids|each token", {"row_ids": [0, 1, 2]}),
    (ValueError, "row_ids|each token", {"row_ids": [[0, 1, 2, 3]] * 2}),
    (ValueError, "row_ids|shape", {"row_ids": np.zeros((1, 3, 4), int)}),
    (ValueError, "row_ids|row_starts", {"row_ids": [0, 1, 2, 3], "row_starts": [0, 0, 0]}),
    (ValueError, "row_starts|3 sequences", {"row_starts": [0, 0]}),
    (ValueError, "row_starts|1", {"row_starts": [0, 1, 0]}),
    (ValueError, "cu_seqlens|shape", {"cu_seqlens": []}),
    (ValueError, "cu_seqlens|fit", {"cu_seqlens": [0, 1 << 40]}),
    (ValueError, "cu_seqlens", {"x": X[0], "cu_seqlens": [0, 3]}),
    (ValueError, "cu_seqlens", {"x": X[0], "cu_seqlens": [0, 5, 4]}),
])
def test_rotate(kind, words, named):
    refused(kind, words, posenc.rotate, **{"x": X, "rotation": TURN, **named})


def test_nothing_is_written_where_something_is_refused():
    out = np.full((3, 4, 8), 7, np.float32)
    for named in ({"row_ids": [0, 1, 2, 9]}, {"pairing": "both"}, {"row_starts": [0, 0, 9]}):
        with pytest.raises(ValueError):
            posenc.rotate(X, TURN, out=out, threads=2, **named)
    assert np.all(out == 7)


@pytest.mark.parametrize("kind, words, named", [
    (ValueError, "positions|-1", {"positions": -1}),
    (ValueError, "positions|2^40", {"positions": [1 << 41]}),
    (ValueError, "positions", {"positions": [[1, 2]]}),
    (TypeError, "positions|single", {"positions": "4"}),
    (ValueError, "dim|0", {"dim": 0}),
    (ValueError, "dim|odd", {"dim": 7}),
    (ValueError, "odd|'drop'", {"dim": 7, "odd": "drop"}),
    (ValueError, "layout|'pairs'", {"layout": "pairs"}),
    (ValueError, "shift|2", {"shift": 2}),
    (ValueError, "base|0", {"base": 0}),
    (ValueError, "scale|0", {"scale": 0}),
    (TypeError, "scale|'1'", {"scale": "1"}),
    (TypeError, "dtype|'int8'", {"dtype": "int8"}),
    (ValueError, "out|(4, 9)|(4, 8)", {"out": np.zeros((4, 9), np.float32)}),
    (ValueError, "out|stride of 0", {"out": np.lib.stride_tricks.as_strided(X.copy(), (4, 8), (0, 4))}),
    (ValueError, "out|read-only", {"out": READ_ONLY[0]}),
    (TypeError, "out|list", {"out": []}),
])
def test_sinusoidal(kind, words, named):
    refused(kind, words, posenc.sinusoidal, **{"positions": 4, "dim": 8, **named})


@pytest.mark.parametrize("kind, words, named", [
    (ValueError, "heads|0", {"heads": 0}),
    (ValueError, "heads", {"heads": 1 << 21}),
    (ValueError, "queries|-1", {"queries": -1}),
    (TypeError, "keys|2.5", {"keys": 2.5}),
    (ValueError, "slopes|'steep'", {"slopes": "steep"}),
    (ValueError, "max_bias|0", {"max_bias": 0}),
    (ValueError, "max_bias", {"max_bias": 2000}),
    (ValueError, "query_offset", {"query_offset": 1 << 41}),
    (ValueError, "first_head|5", {"first_head": 5}),
    (ValueError, "head_count|4", {"first_head": 1, "head_count": 4}),
    (ValueError, "add|out", {"add": True}),
    (ValueError, "out|(4, 3, 8)|(4, 3, 5)", {"out": np.zeros((4, 3, 8), np.float32)}),
    (ValueError, "out|contiguous keys", {"out": np.zeros((4, 5, 3), np.float32).transpose(0, 2, 1)}),
    (ValueError, "out|stride of 0", {"out": np.lib.stride_tricks.as_strided(X.copy(), (4, 3, 5), (0, 32, 4))}),
])
def test_alibi(kind, words, named):
    refused(kind, words, posenc.alibi_bias, **{"heads": 4, "queries": 3, "keys": 5, **named})


def test_rows():
    refused(TypeError, "out|pair", posenc.angles, SPEC, range(4), out=X)
    refused(ValueError, "out|(4, 5)|(4, 4)", posenc.angles, SPEC, range(4), out=(np.zeros((4, 5)), np.zeros((4, 5))))
    refused(ValueError, "out", posenc.angles, SPEC, range(4), out=(TABLE.copy(), np.zeros((4, 4))))
    same = np.zeros((4, 4))
    refused(ValueError, "overlap", posenc.angles, SPEC, range(4), out=(same, same))
    refused(ValueError, "dtype", posenc.angles, SPEC, range(4), mode="float32", dtype="float64")
    refused(TypeError, "rotation[3:5]", lambda: TURN[1])


def test_other_functions():
    refused(TypeError, "old|int", posenc.change, 1, 2)
    other = posenc.RopeSpec(16).frequencies()
    refused(ValueError, "pairs", posenc.change, SPEC.frequencies(), other)
    refused(TypeError, "x|list", posenc.apply_rope, [1.0, 2.0])
    refused(ValueError, "positions|missing", posenc.apply_rope, X[0, 0])
    refused(ValueError, "positions|2|one token", posenc.apply_rope, X[0, 0], [1, 2])
    refused(ValueError, "head_dim", posenc.apply_rope, np.zeros((3, 1)))
    refused(ValueError, "rotary_dim|7|even", posenc.apply_rope, np.zeros((3, 7)))
    refused(ValueError, "out", posenc.convert, X, "float16", out=np.zeros(5, np.float16))
    refused(TypeError, "int64", posenc.convert, X.astype(int), "float16")
    refused(ValueError, "overlap", posenc.convert, MEMORY[:100], "float32", out=MEMORY[50:150])


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_allowed_is_not_refused(dtype):
    assert posenc.rotate(X.astype(DTYPES[dtype]), TURN).dtype == DTYPES[dtype]
    assert BF16 in DTYPES.values()
