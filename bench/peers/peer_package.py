"""posenc's own Python package, called as people call it. SPDX-License-Identifier: MIT"""
import numpy as np

from cases import BASE, FIRST_POSITION, HEAD_DIM, Contender, Missing, from_bits

try:
    import posenc
except ImportError as error:
    raise Missing(f"{error}; pip install . in the clone") from None


def bits_of(array, dtype):
    return array.view(np.uint16) if dtype == "bf16" else array


def numpy_contenders(case, rotation):
    x = case.x
    if case.dtype == "bf16":
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            return
        x = x.view(bfloat16)
    out, new = np.empty_like(x), [None]

    def into():
        posenc.rotate(x, rotation, axes="tokens,heads,head_dim", out=out)

    def fresh():
        new[0] = posenc.rotate(x, rotation, axes="tokens,heads,head_dim")

    yield Contender("posenc package, NumPy, out=", into, lambda: from_bits(bits_of(out, case.dtype), case.dtype))
    yield Contender("posenc package, NumPy", fresh, lambda: from_bits(bits_of(new[0], case.dtype), case.dtype))


def torch_contenders(case, rotation):
    try:
        from peer_torch import tensor_of, torch
    except Missing:
        return
    x, new = tensor_of(case), [None]

    def fresh():
        new[0] = posenc.rotate(x, rotation, axes="tokens,heads,head_dim")

    def numbers(tensor):
        return tensor.detach().double().numpy()

    yield Contender("posenc package, PyTorch", fresh, lambda: numbers(new[0]))
    if case.tokens > 32:
        return
    watched, tracked = x.clone().requires_grad_(), [None]
    compiled = torch.compile(lambda x: posenc.rotate(x, rotation, axes="tokens,heads,head_dim"))

    def with_gradient():
        with torch.enable_grad():
            tracked[0] = posenc.rotate(watched, rotation, axes="tokens,heads,head_dim")

    def by_operator():
        new[0] = compiled(x)

    yield Contender("posenc package, PyTorch, autograd", with_gradient, lambda: numbers(tracked[0]))
    yield Contender("posenc package, PyTorch, compiled", by_operator, lambda: numbers(new[0]))


def contenders(case):
    spec = posenc.RopeSpec(HEAD_DIM, base=BASE, pairing=case.pairing)
    rotation = posenc.rotation(spec, range(FIRST_POSITION, FIRST_POSITION + case.tokens))
    return [*numpy_contenders(case, rotation), *torch_contenders(case, rotation)]
