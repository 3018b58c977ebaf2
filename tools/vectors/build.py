"""From a case's description to its files: what each kind of case computes. SPDX-License-Identifier: MIT"""
import numpy as np
from mpmath import cos, mpf, sin

from vectors import framework
from vectors.arrays import inputs, narrowed, npy, widened
from vectors.formulas import (alibi_slopes, attention_factor, axis_of_pairs, inverse_frequencies, rounded,
                              sinusoid_frequencies, softmax_factor)

ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


class Collection:
    """The cases and the bytes of their files, in the order in which they were added."""

    def __init__(self):
        self.cases, self.files = [], {}

    def add(self, name, kind, catches, **members):
        assert not any(case["name"] == name for case in self.cases), name
        self.cases.append({"name": name, "kind": kind, "catches": catches, **members})
        return self.cases[-1]

    def file(self, name, array, dtype):
        path = name + ".npy"
        data = npy(np.ascontiguousarray(array), dtype)
        assert self.files.setdefault(path, data) == data, path
        return path


def tolerance(operations, size):
    """Largest absolute difference allowed to a program that computes in each dtype: so many roundings of
    numbers of this size."""
    return {dtype: float(f"{operations * size * unit:.1e}") for dtype, unit in ROUNDOFF.items()}


def float32_angles(positions, frequencies, size):
    """How far float32 angles may be off on top: a frequency within 6 ulp, the product rounded. No bound of 2 is put
    upon it, since float64 angles are allowed a share of it."""
    largest = max((abs(mpf(float(p))) for p in np.ravel(positions)), default=0) * max(map(abs, frequencies))
    return float(f"{float(8 * mpf(2)**-24 * largest * size):.1e}")


# --- Rows ---------------------------------------------------------------------------------------

def exact_values(encoding, positions, dtype, magnitude):
    """cos and sin [..., pairs] of positions [...] or [axes, ...], rounded once."""
    f, axes = inverse_frequencies(encoding), encoding.get("axes")
    follows = axis_of_pairs(axes, len(f))
    shape = positions.shape[1:] if axes else positions.shape
    both = np.empty((2, *shape, len(f)))
    for at in np.ndindex(*shape):
        for j, (frequency, axis) in enumerate(zip(f, follows)):
            p = positions[(axis, *at)] if axes else positions[at]
            angle = (mpf(float(p)) if positions.dtype.kind == "f" else mpf(int(p))) * frequency
            both[(0, *at, j)] = rounded(magnitude * cos(angle), dtype)
            both[(1, *at, j)] = rounded(magnitude * sin(angle), dtype)
    return both


def float32_values(encoding, positions, with_attention=True):
    """float32 inverse frequency times float32 position, cos and sin of that, times the float32 factor."""
    inv, axes = framework.inverse_frequencies(encoding), encoding.get("axes")
    follows = axis_of_pairs(axes, len(inv))
    single = positions.astype(np.float32)
    single = np.stack([single[axis] for axis in follows], -1) if axes else single[..., None]
    angles = single * inv
    both = np.empty((2, *angles.shape), np.float32)
    for at in np.ndindex(*angles.shape):
        angle = mpf(float(angles[at]))
        both[(0, *at)], both[(1, *at)] = rounded(cos(angle), "f32"), rounded(sin(angle), "f32")
    return both * (framework.attention(encoding) if with_attention else np.float32(1))


def cos_and_sin(encoding, positions, mode, dtype, with_attention=True):
    if mode == "float32":
        return narrowed(float32_values(encoding, positions, with_attention), dtype)
    magnitude = attention_factor(encoding) if with_attention else mpf(1)
    both = exact_values(encoding, positions, dtype, magnitude)
    return narrowed(both.astype(np.float64 if dtype == "f64" else np.float32), dtype)


def laid_out(both, layout):
    """The arrays of a row layout, by name."""
    c, s = both
    if layout == "half":
        return {"cos": c, "sin": s}
    if layout == "full_half":
        return {"cos": np.concatenate([c, c], -1), "sin": np.concatenate([s, s], -1)}
    if layout == "full_interleaved":
        return {"cos": np.repeat(c, 2, -1), "sin": np.repeat(s, 2, -1)}
    if layout == "cos_sin":
        return {"rows": np.concatenate([c, s], -1)}
    assert layout == "pairs"
    return {"rows": np.stack([c, s], -1).reshape(*c.shape[:-1], -1)}


def whole(positions):
    return np.array(positions, dtype=np.int64)


def add_rows(to, name, catches, encoding, positions, *, mode="exact", dtype="f32", layout="half", real=False):
    array = np.array(positions, np.float64) if real else whole(positions)
    both = cos_and_sin(encoding, array, mode, dtype)
    m = max(1.0, float(attention_factor(encoding)))
    to.add(name, "rows", catches, encoding=encoding, positions=array.tolist(), mode=mode, dtype=dtype,
           layout=layout, outputs={key: to.file(f"{name}.{key}", value, dtype)
                                   for key, value in laid_out(both, layout).items()},
           tolerance=tolerance(2, m),
           float32_angles=float32_angles(positions, inverse_frequencies(encoding), m))


def add_change(to, name, catches, old, new, positions):
    """Rows that turn what `old` has rotated into what `new` rotates."""
    f = [b - a for a, b in zip(inverse_frequencies(old), inverse_frequencies(new))]
    ratio = attention_factor(new) / attention_factor(old)
    both = np.array([[[rounded(ratio * g(p * x), "f32") for x in f] for p in positions] for g in (cos, sin)])
    outputs = {key: to.file(f"{name}.{key}", value.astype(np.float32), "f32")
               for key, value in zip(("cos", "sin"), both)}
    to.add(name, "change", catches, **{"from": old, "to": new}, positions=positions, outputs=outputs,
           tolerance=tolerance(2, max(1.0, float(ratio))), float32_angles=float32_angles(positions, f, 1.0))


def add_frequencies(to, name, catches, encoding):
    single = framework.inverse_frequencies(encoding)
    exact = np.array([rounded(x, "f64") for x in inverse_frequencies(encoding)])
    outputs = {"inv_freq": to.file(f"{name}.inv_freq", exact, "f64")}
    if single is not None:
        outputs["inv_freq_float32"] = to.file(f"{name}.inv_freq_float32", single.astype(np.float32), "f32")
    to.add(name, "frequencies", catches, encoding=encoding, outputs=outputs,
           attention_factor=rounded(attention_factor(encoding), "f64"),
           softmax_factor=rounded(softmax_factor(encoding), "f64"))


# --- Rotations ----------------------------------------------------------------------------------

ORDER = ["batch", "tokens", "heads", "head_dim"]


def in_order(array, axes):
    """A view [batch, tokens, heads, head_dim] of an array whose axes have these names."""
    names = list(axes)
    for missing in [name for name in ORDER if name not in names]:
        array, names = array[None], [missing, *names]
    return array.transpose([names.index(name) for name in ORDER])


def channels(encoding, pairing):
    """The first and the second channel of every pair."""
    start, d = encoding["rotary_start"], encoding["rotary_dim"]
    if pairing == "half":
        return slice(start, start + d // 2), slice(start + d // 2, start + d)
    return slice(start, start + d, 2), slice(start + 1, start + d, 2)


def turned(a, b, c, s, direction):
    if direction == "forward":
        return a * c - b * s, a * s + b * c
    return a * c + b * s, b * c - a * s


def rotated(x, axes, rows, encoding, direction, output_pairing, dtype, magnitude):
    """Every product and sum rounded in float32 (float64 for f64), the result rounded once to its dtype."""
    y = x.copy()
    view, out = in_order(x, axes), in_order(y, axes)
    c, s = (widened(r, "f64" if dtype == "f64" else "f32") for r in rows)
    c, s = (r[:, :, None] if r.ndim == 3 else r[None, :, None] for r in (c, s))
    first, second = channels(encoding, encoding["pairing"])
    a, b = widened(view[..., first], dtype), widened(view[..., second], dtype)
    u, v = turned(a, b, c, s, direction)
    if direction == "inverse" and magnitude != 1:
        u, v = u * u.dtype.type(1 / magnitude**2), v * v.dtype.type(1 / magnitude**2)
    first, second = channels(encoding, output_pairing or encoding["pairing"])
    out[..., first], out[..., second] = narrowed(u, dtype), narrowed(v, dtype)
    return y


def add_rotate(to, name, catches, encoding, axes, shape, positions, *, dtype="f32", mode="exact",
               direction="forward", output_pairing=None, without_attention=False, x=None, positions_axes=None):
    """positions: [tokens], [batch, tokens], or [axes, tokens] where the encoding has several axes."""
    x = inputs(name, shape, dtype) if x is None else x
    array = whole(positions)
    names = positions_axes or (["axes", "tokens"] if "axes" in encoding else
                               ["batch", "tokens"] if array.ndim == 2 else ["tokens"])
    row_dtype = "f64" if dtype == "f64" else "f32"
    rows = cos_and_sin(encoding, array, mode, row_dtype, not without_attention)
    exact = 1.0 if without_attention else rounded(attention_factor(encoding), "f64")
    magnitude = float(np.float32(exact)) if mode == "float32" else exact
    y = rotated(x, axes, rows, encoding, direction, output_pairing, dtype, magnitude)
    size = 2.83 * max(1.0, magnitude)
    members = {"direction": direction, "mode": mode, "dtype": dtype}
    if output_pairing:
        members["output_pairing"] = output_pairing
    if without_attention:
        members["without_attention"] = True
    to.add(name, "rotate", catches, encoding=encoding, axes=axes, shape=list(x.shape), positions=array.tolist(),
           positions_axes=names, **members, input=to.file(f"{name}.input", x, dtype),
           outputs={"output": to.file(f"{name}.output", y, dtype)},
           tolerance=tolerance(4, size), float32_angles=float32_angles(positions, inverse_frequencies(encoding), size))
    return y


# --- Tables and biases --------------------------------------------------------------------------

def add_sinusoidal(to, name, catches, positions, *, dtype="f32", **members):
    table = {"dim": 8, "layout": "interleaved", "shift": 0, "base": 10000.0, "scale": 1.0, "start": 0.0, **members}
    f, d = sinusoid_frequencies(table), table["dim"]
    array = np.array(positions, np.float64)
    out = np.zeros((len(array), d))
    for i, p in enumerate(array):
        if p == table.get("padding_position"):
            continue
        angles = [(mpf(float(p)) + mpf(table["start"])) * x for x in f]
        sines, cosines = ([rounded(g(angle), dtype) for angle in angles] for g in (sin, cos))
        row = [value for both in zip(sines, cosines) for value in both]
        if table["layout"] == "sin_cos":
            row = sines + cosines
        elif table["layout"] == "cos_sin":  # of an odd width the last cosine is left out, wherever it stands
            row = cosines[:d // 2] + sines
        out[i, :min(len(row), d)] = row[:d]
    values = narrowed(out.astype(np.float32 if dtype != "f64" else np.float64), dtype)
    to.add(name, "sinusoidal", catches, table=table, positions=array.tolist(), dtype=dtype,
           outputs={"table": to.file(f"{name}.table", values, dtype)}, tolerance=tolerance(2, 1.0),
           float32_angles=float32_angles(array + table["start"], f, 1.0))


def add_slopes(to, name, catches, heads, *, rule="paper", max_bias=8.0):
    slopes = np.array([rounded(x, "f64") for x in alibi_slopes(heads, rule, max_bias)])
    to.add(name, "alibi_slopes", catches, heads=heads, rule=rule, max_bias=max_bias,
           outputs={"slopes": to.file(f"{name}.slopes", slopes, "f64")})


def add_bias(to, name, catches, heads, queries, keys, *, first_head=0, count=None, query_offset=None,
             mask="causal", rule="paper", max_bias=8.0, dtype="f32"):
    """Slope and distance rounded to float32, their product too; 16 bits rounded from that."""
    count, offset = count or heads - first_head, keys - queries if query_offset is None else query_offset
    slopes = [rounded(x, "f64") for x in alibi_slopes(heads, rule, max_bias)][first_head:first_head + count]
    query, key = np.arange(queries)[:, None] + offset, np.arange(keys)
    distance = np.abs(query - key).astype(np.float32)
    bias = np.zeros((count, queries, keys), np.float32) - np.float32(slopes)[:, None, None] * distance
    if mask == "causal":
        bias[:, key > query] = -np.inf
    bits = narrowed(np.where(np.isinf(bias), np.float32(0), bias) + np.float32(0), dtype)
    if dtype == "bf16":
        bits[np.isinf(bias)] = 0xFF80
    else:
        bits[np.isinf(bias)] = -np.inf
    to.add(name, "alibi_bias", catches, heads=heads, first_head=first_head, count=count, queries=queries, keys=keys,
           query_offset=offset, mask=mask, rule=rule, max_bias=max_bias, dtype=dtype,
           outputs={"bias": to.file(f"{name}.bias", bits, dtype)},
           tolerance=tolerance(2, float(max(slopes)) * max(queries, keys)))
