#!/usr/bin/env python3
"""Frozen test vectors of tests/test_head_rows.c: which row of a projection goes where when its pairing changes, by
NumPy's reshape and swapaxes.

  tools/make_row_orders.py > data/row_orders.h                                  SPDX-License-Identifier: MIT
"""
import numpy as np

# heads, kv_heads, head_dim, rotary_dim, rotary_start
SHAPES = [(4, 2, 8, 8, 0), (4, 4, 8, 4, 0), (6, 2, 12, 8, 0), (4, 1, 12, 4, 8), (3, 3, 4, 4, 0), (2, 1, 20, 12, 4)]


def turned(heads, rotary_start, rotary_dim, to):
    """heads[..., head_dim] of row numbers with the rotary ones reordered."""
    out = heads.copy()
    block = heads[..., rotary_start:rotary_start + rotary_dim]
    split = (2, rotary_dim // 2) if to == "INTERLEAVED" else (rotary_dim // 2, 2)
    out[..., rotary_start:rotary_start + rotary_dim] = (
        block.reshape(*block.shape[:-1], *split).swapaxes(-1, -2).reshape(block.shape))
    return out


def cases():
    for shape in SHAPES:
        heads, kv, dim, rotary, start = shape
        for to in ("HALF", "INTERLEAVED"):
            def turn(x):
                return turned(x, start, rotary, to)
            for side, count in (("Q", heads), ("K", kv)):
                rows = np.arange(count * dim)
                yield shape, "SEPARATE", side, 0, to, turn(rows.reshape(count, dim))
                yield shape, "SEPARATE", side, 1, to, turn(rows.reshape(count, dim))
                if count > 1:
                    yield shape, "SEPARATE", side, 1, to, turn(np.arange(dim))
            gated = np.arange(2 * heads * dim).reshape(heads, 2, dim)
            yield shape, "SEPARATE", "Q", 0, to, np.stack([turn(gated[:, 0]), gated[:, 1]], 1)
            joined = np.arange((heads + 2 * kv) * dim).reshape(-1, dim)
            yield shape, "JOINED", "QK", 0, to, np.concatenate([turn(joined[:heads + kv]), joined[heads + kv:]])
            grouped = np.arange((heads + 2 * kv) * dim).reshape(kv, heads // kv + 2, dim)
            yield shape, "GROUPED", "QK", 0, to, np.concatenate([turn(grouped[:, :-1]), grouped[:, -1:]], 1)
            yield shape, "LATENT", "Q", 0, to, turn(np.arange(heads * dim).reshape(heads, dim))
            latent = np.arange(17 + rotary)
            yield shape, "LATENT", "K", 0, to, np.concatenate([latent[:17], turned(latent[17:], 0, rotary, to)])


def main():
    print("/* Made by tools/make_row_orders.py. SPDX-License-Identifier: MIT */\n/* clang-format off */")
    names = []
    for number, (shape, layout, sides, gains, to, order) in enumerate(cases()):
        flat = order.ravel()
        assert sorted(flat) == list(range(flat.size))
        print(f"static const uint16_t row_order_{number}[] = {{")
        for i in range(0, flat.size, 24):
            print("    " + ", ".join(map(str, flat[i:i + 24])) + ",")
        print("};")
        names.append(f"    {{{{{', '.join(map(str, shape))}}}, PENC_{layout}, \"{sides}\", {gains}, "
                     f"POSENC_PAIRING_{to}, {flat.size}, row_order_{number}}},")
    print("static const row_order_case row_order_cases[] = {\n" + "\n".join(names) + "\n};")


main()
