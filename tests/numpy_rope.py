"""A RoPE in NumPy, in float64, with faults that can be planted into it. For tests only; it shares nothing with
the C library: frequencies come from tools/vectors/formulas.py. `faults` is a dict; most have the names that
posenc gives to causes, and `encoding` holds members of the encoding that were taken wrongly.
SPDX-License-Identifier: MIT"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from vectors import framework  # noqa: E402
from vectors.formulas import attention_factor, axis_of_pairs, inverse_frequencies  # noqa: E402


def to_bf16(x):
    """float64 values rounded to bfloat16 (through float32, as frameworks do)."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)).view(np.float32).astype(float)


def to_f16(x):
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(float)


def to_f32(x):
    return np.asarray(x).astype(np.float32).astype(float)


OTHER = {"half": "interleaved", "interleaved": "half"}
NARROW = {"f64": lambda x: x, "f32": to_f32, "f16": to_f16, "bf16": to_bf16}

KEPT = ("float32_angles", "frequencies_bf16", "frequencies_f16", "angles_bf16")  # faults of frequencies themselves


def frequencies(encoding, faults):
    """Radians per position, float64."""
    changed = {**encoding, **faults.get("encoding", {})}  # another base, scaling, width, ...
    if "scaling_not_applied" in faults:
        changed.pop("scaling", None)
    if "exponent_over_head_dim" in faults:
        over = {**changed, "rotary_dim": changed["head_dim"], "rotary_start": 0}
        return frequencies(over, {key: True for key in faults if key in KEPT})[:changed["rotary_dim"] // 2]
    f = np.array([float(x) for x in inverse_frequencies(changed)])
    if "float32_angles" in faults:  # as transformers forms them
        f = framework.inverse_frequencies(changed).astype(float)
    for name in ("bf16", "f16"):
        if f"frequencies_{name}" in faults:
            f = NARROW[name](f)
    return to_bf16(f) if "angles_bf16" in faults else f


def planted_positions(positions, faults):
    """positions: [..., tokens]"""
    p = np.asarray(positions, float)
    if "positions_of_first" in faults:
        p = np.broadcast_to(p[:1], p.shape)
    if "constant_position" in faults:
        p = np.broadcast_to(p[..., :1], p.shape)
        if faults["constant_position"] is not True:
            p = np.full(p.shape, float(faults["constant_position"]))
    if "position_restarts" in faults:
        p = p - p[..., :1]
    if "position_from_index" in faults:
        p = np.broadcast_to(np.arange(p.shape[-1], dtype=float), p.shape)
    if "axes_reversed" in faults:
        p = p[::-1]
    p = p + faults.get("position_shifted", 0)
    if "positions_bf16" in faults or "angles_bf16" in faults:
        p = to_bf16(p)
    return to_f16(p) if "positions_f16" in faults else p


def running_product(encoding, p, count):
    """ggml: theta *= theta_scale, in float32."""
    step = np.float32(np.float32(encoding["base"]) ** np.float32(-2.0 / encoding["rotary_dim"]))
    theta = [p.astype(np.float32)]
    for _ in range(count - 1):
        theta.append(theta[-1] * step)
    return np.stack(theta, -1).astype(float)


def angles(encoding, positions, faults):
    """[..., pairs]; with several axes positions are [axes, tokens]."""
    p, f = planted_positions(positions, faults), frequencies(encoding, faults)
    if "axes" in encoding:
        p = np.stack([p[axis] for axis in axis_of_pairs(encoding["axes"], len(f))], -1)
    else:
        p = p[..., None]
    if "recurrence_drift" in faults:
        angle = running_product({**encoding, **faults.get("encoding", {})}, p[..., 0], len(f))
    elif "float32_angles" in faults:
        angle = (p.astype(np.float32) * f.astype(np.float32)).astype(float)
    else:
        angle = p * f
    if "angles_bf16" in faults:
        angle = to_bf16(angle)
    angle = angle * faults.get("angle_scale", 1.0)
    return -angle if "negated_angle" in faults else angle


def cos_sin(encoding, positions, faults, with_attention=True):
    angle = angles(encoding, positions, faults)
    planted = {**encoding, **faults.get("encoding", {})}
    m = float(attention_factor(planted)) if with_attention and "scaling_not_applied" not in faults else 1.0
    m = {"magnitude_missing": 1.0, "magnitude_doubled": m * m}.get(faults.get("magnitude"), m)
    m = faults.get("other_magnitude", m)
    with np.errstate(invalid="ignore"):  # infinite positions, of float16
        c, s = m * np.cos(angle), m * np.sin(angle)
    for name in ("bf16", "f16"):
        if f"tables_{name}" in faults:
            c, s = NARROW[name](c), NARROW[name](s)
    return (s, c) if "cos_sin_swapped" in faults else (c, s)


def pair_channels(d, pairing):
    """First and second channel of every pair."""
    j = np.arange(d // 2)
    return (j, j + d // 2) if pairing == "half" else (2 * j, 2 * j + 1)


def rotate_heads(x, c, s, pairing, direction, narrow, mixed):
    """x [..., d]; c, s [..., d/2] broadcast against it. Each product and sum is rounded by `narrow`."""
    d = x.shape[-1]
    first, second = pair_channels(d, pairing)
    full_c, full_s = np.empty(c.shape[:-1] + (d,)), np.empty(c.shape[:-1] + (d,))
    table = OTHER[pairing] if mixed else pairing
    for channels in pair_channels(d, table):  # tables laid out for one pairing, channels paired by another
        full_c[..., channels], full_s[..., channels] = c, s
    partner = np.empty_like(x)
    sign = -1.0 if direction == "forward" else 1.0
    partner[..., first], partner[..., second] = sign * x[..., second], -sign * x[..., first]
    return narrow(narrow(x * narrow(full_c)) + narrow(partner * narrow(full_s)))


def rotate(x, encoding, positions, *, faults=None, direction="forward", output_pairing=None, with_attention=True,
           arithmetic="f64"):
    """x: [batch, tokens, heads, head_dim]; positions: [tokens], [batch, tokens], or [axes, tokens].
    `arithmetic`: every product and sum, cos and sin are rounded to this dtype, as transformers does."""
    faults = dict(faults or {})
    narrow = NARROW[arithmetic]
    if "not_rotated" in faults:
        return np.array(x, float)
    c, s = cos_sin(encoding, positions, faults, with_attention)
    c, s = (t[:, :, None] if t.ndim == 3 else t[None, :, None] for t in (c, s))
    if "position_of_head" in faults:
        c, s = (t[:, np.arange(x.shape[2]) % t.shape[1]].transpose(0, 2, 1, 3) for t in (c, s))
    planted = {**encoding, **faults.get("encoding", {})}
    start, d, pairing = planted["rotary_start"], planted["rotary_dim"], planted["pairing"]
    if "other_pairing" in faults:
        pairing = OTHER[pairing]
    if "other_output_pairing" in faults:
        output_pairing = OTHER[pairing]
    part = x[..., start:start + d]
    y = np.array(x, float)
    turned = rotate_heads(part, c, s, pairing, direction, narrow, "pair_mix_up" in faults)
    if direction == "inverse":
        turned = turned / float(attention_factor(encoding)) ** 2
    if output_pairing and output_pairing != pairing:
        moved = np.empty_like(turned)
        for to, of in zip(pair_channels(d, output_pairing), pair_channels(d, pairing)):
            moved[..., to] = turned[..., of]
        turned = moved
    y[..., start:start + d] = turned
    if "batch_left_out" in faults:
        y[1:] = x[1:] * faults["batch_left_out"]  # 1: as it was, 0: zeros
    if "heads_left_out" in faults:
        y[:, :, 1:] = x[:, :, 1:]
    return y
