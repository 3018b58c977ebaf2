"""MLX on the CPU: its fast.rope, which forms the angles by itself. SPDX-License-Identifier: MIT"""
import numpy as np

from cases import BASE, FIRST_POSITION, HEAD_DIM, Contender, Missing

try:
    import mlx.core as mx
except ImportError as error:
    raise Missing(str(error)) from None

mx.set_default_device(mx.cpu)


def contenders(case):
    array = np.ascontiguousarray(case.x.transpose(1, 0, 2)[None])  # (1, heads, tokens, head_dim)
    x = mx.array(array)
    if case.dtype == "bf16":
        x = x.view(mx.bfloat16)
    mx.eval(x)
    out = [None]

    def call():
        out[0] = mx.fast.rope(x, HEAD_DIM, traditional=case.pairing == "interleaved", base=BASE, scale=1.0,
                              offset=FIRST_POSITION)
        mx.eval(out[0])

    def result():
        return np.array(out[0].astype(mx.float32))[0].transpose(1, 0, 2).astype(np.float64)
    # Angles are float32 products of positions up to 5096, good to about 5096 * 2^-24.
    return [Contender("MLX fast.rope", call, result, "angles included, (heads, tokens)",
                      tolerance=2e-3 if case.dtype == "f32" else 0.0)]
