"""Shapes, strides and dtypes drawn at random: right, or refused, never a crash. SPDX-License-Identifier: MIT"""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import DTYPES, rotated, rows, same_bytes

import posenc

ANY_DTYPES = [*DTYPES.values(), *map(np.dtype, (">f4", ">f8", "i4", "u2", "c8", "?", "O", "M8[s]", "f4,i1"))]
LETTERS = {"b": "batch", "h": "heads", "t": "tokens", "d": "head_dim"}


@st.composite
def strided(draw, sizes, dtype):
    """An array of that shape somewhere in another: gaps, offsets, axes reversed, any order in memory."""
    order = draw(st.permutations(range(len(sizes))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in sizes]
    before = [draw(st.integers(0, 2)) for _ in sizes]
    whole = [size * abs(step) + extra for size, step, extra in zip(sizes, steps, before)]
    memory = np.random.default_rng(draw(st.integers(0, 1000))).standard_normal([whole[i] for i in order])
    view = memory.astype(dtype).transpose(np.argsort(order))
    parts = tuple(slice(extra, extra + size * step, step) if step > 0 else
                  slice(extra - step * size - 1, extra - 1 if extra else None, step)
                  for size, step, extra in zip(sizes, steps, before))
    return view[parts]


@st.composite
def cases(draw):
    letters = "".join(draw(st.permutations(draw(st.sampled_from(["td", "htd", "bthd", "bbthd", "bthhd"])))))
    head_dim = 2 * draw(st.integers(1, 20))
    rotary_dim = 2 * draw(st.integers(1, head_dim // 2))
    sizes = {"t": draw(st.integers(0, 9)), "d": head_dim}
    shape = [sizes.get(letter, None) or (draw(st.integers(0, 4)) if letter in "bh" else sizes[letter])
             for letter in letters]
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    x = draw(strided(shape, dtype))
    out = draw(st.none() | strided(shape, draw(st.sampled_from(list(DTYPES.values())))) | st.just(x))
    return {"letters": letters, "x": x, "out": out, "head_dim": head_dim, "rotary_dim": rotary_dim,
            "start": draw(st.integers(0, head_dim - rotary_dim)),
            "pairing": draw(st.sampled_from(["half", "interleaved"])),
            "output_pairing": draw(st.none() | st.sampled_from(["half", "interleaved"])),
            "backward": draw(st.booleans()), "threads": draw(st.integers(1, 4)),
            "positions": draw(st.lists(st.integers(-1 << 20, 1 << 20), min_size=sizes["t"], max_size=sizes["t"]))}


@given(cases())
def test_rotations_of_any_shape_and_strides(case):
    x, letters = case["x"], case["letters"]
    spec = posenc.RopeSpec(case["head_dim"], case["rotary_dim"], pairing=case["pairing"], rotary_start=case["start"])
    turn = posenc.rotation(spec, case["positions"])
    # The rows themselves are tested elsewhere: here float64 ones are taken as they come.
    cos, sin = (t.astype(np.float64) for t in turn._float64()) if x.dtype == np.float64 else (turn.cos, turn.sin)
    order = sorted(range(x.ndim), key=lambda i: "bhtd".index(letters[i]))
    before = x.copy()
    wanted = rotated(before.transpose(order), cos, sin, pairing=case["pairing"], start=case["start"],
                     output_pairing=case["output_pairing"], direction=-1 if case["backward"] else 1,
                     dtype=None if case["out"] is None else case["out"].dtype)
    try:
        found = posenc.rotate(x, turn, axes=tuple(LETTERS[letter] for letter in letters), out=case["out"],
                              backward=case["backward"], output_pairing=case["output_pairing"],
                              threads=case["threads"])
    except ValueError as error:
        assert letters.count("b") > 1 or letters.count("h") > 1 or "16 KiB" in str(error) or "in place" in str(error), error
        assert same_bytes(x.copy(), before)
        return
    if case["out"] is not None:
        assert found is case["out"]
    assert found.dtype == wanted.dtype
    same = np.ascontiguousarray(found.transpose(order))
    if x.dtype == np.float64 and found.dtype != np.float64:
        np.testing.assert_allclose(same.astype(float), wanted.astype(float), rtol=1e-2, atol=1e-6)
    else:
        np.testing.assert_array_equal(same.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


def words():
    return st.sampled_from(["half", "interleaved", "exact", "float32", "pairs", "", "batch,tokens,head_dim", "f16"])


def anything():
    arrays = st.builds(lambda shape, dtype: np.zeros(shape, dtype),
                       st.lists(st.integers(0, 3), max_size=5), st.sampled_from(ANY_DTYPES))
    return (st.none() | st.booleans() | st.integers() | st.floats() | words() | arrays | st.lists(st.integers(), max_size=4)
            | st.just(posenc.RopeSpec(4)) | st.just(posenc.rotation(posenc.RopeSpec(4), range(3)))
            | st.tuples(arrays, arrays) | st.binary(max_size=8))


NAMES = {
    posenc.rotate: ["pairing", "axes", "inverse", "backward", "output_pairing", "dtype", "out", "row_ids", "row_starts",
                    "cu_seqlens", "threads", "stores"],
    posenc.angles: ["seq_len", "mode", "dtype", "layout", "attention", "out", "threads"],
    posenc.rotation: ["seq_len", "mode", "dtype", "attention", "threads"],
    posenc.Rotation: ["pairing", "layout", "rotary_start", "attention_factor"],
    posenc.apply_rope: ["positions", "base", "pairing"],
    posenc.convert: ["out"],
}


@given(st.sampled_from(list(NAMES)), st.data())
def test_arguments_of_any_kind(function, data):
    first = data.draw(anything())
    second = data.draw(st.just(posenc.rotation(posenc.RopeSpec(4), range(3))) | anything())
    chosen = data.draw(st.lists(st.sampled_from(NAMES[function]), max_size=2, unique=True))
    named = {name: data.draw(anything()) for name in chosen}
    if isinstance(named.get("threads"), int) and named["threads"] > 8:
        named["threads"] = 8
    try:
        function(first, *(() if function is posenc.apply_rope else (second,)), **named)
    except (TypeError, ValueError) as error:
        assert str(error)
        assert "incompatible function arguments" not in str(error)


@given(st.integers(2, 40), st.lists(st.integers(-(1 << 40), 1 << 40) | st.floats(-1e6, 1e6), max_size=5),
       st.sampled_from(["interleaved", "sin-cos", "cos-sin"]), st.sampled_from(list(DTYPES)),
       st.none() | st.sampled_from(["truncate", "zero", "ceil"]), st.integers(1, 3))
def test_sinusoids_of_any_shape(dim, positions, layout, dtype, odd, threads):
    try:
        found = posenc.sinusoidal(positions, dim, layout=layout, dtype=dtype, odd=odd, threads=threads)
    except ValueError as error:
        assert dim % 2 and odd is None, error
        return
    assert found.shape == (len(positions), dim)
    assert np.all(np.abs(found.astype(float)) <= 1)


@given(st.integers(1, 20), st.integers(0, 6), st.integers(0, 6), st.integers(-8, 8) | st.none(), st.booleans(),
       st.sampled_from(list(DTYPES)), st.integers(1, 3), st.data())
def test_biases_of_any_shape(heads, queries, keys, offset, causal, dtype, threads, data):
    first = data.draw(st.integers(0, heads))
    count = data.draw(st.integers(0, heads - first))
    wanted = posenc.alibi_bias(heads, queries, keys, query_offset=offset, causal=causal, dtype=dtype)
    whole = np.zeros((2 * count, queries + 1, keys + 2), DTYPES[dtype])
    out = whole[::2, 1:, 1:keys + 1]
    posenc.alibi_bias(heads, queries, keys, query_offset=offset, causal=causal, first_head=first, head_count=count,
                      out=out, threads=threads)
    np.testing.assert_array_equal(out.astype(float), wanted[first:first + count].astype(float))
    assert not whole[1::2].any() and not whole[..., 0].any() and not whole[:, 0].any()


def test_the_reference_itself():
    cos, sin = rows([3], 2)
    found = rotated(np.array([[1.0, 0.0]], np.float32), cos, sin)
    np.testing.assert_allclose(found, [[np.cos(3), np.sin(3)]], rtol=1e-6)
