"""PyTorch, eager and compiled, by the formulas that model code has. SPDX-License-Identifier: MIT"""
import warnings

from cases import PAIRS, Contender, Missing

try:
    import torch
except ImportError as error:
    raise Missing(str(error)) from None

torch.set_num_threads(1)
torch.set_grad_enabled(False)
KIND = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def rotate_half(x):
    return torch.cat((-x[..., PAIRS:], x[..., :PAIRS]), -1)


def half(x, cos, sin):
    """transformers' Llama: tables in the dtype of x, one number for each channel."""
    return x * cos + rotate_half(x) * sin


def interleaved(x, cos, sin):
    """GPT-J's form: even and odd channels, stacked again."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def complex_product(x, turns):
    """Meta's Llama: pairs as complex numbers in float32."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def tensor_of(case):
    x = torch.from_numpy(case.x)
    return x.view(torch.bfloat16) if case.dtype == "bf16" else x


def contenders(case):
    x, kind = tensor_of(case), KIND[case.dtype]
    tables = [torch.from_numpy(t)[:, None, :] for t in (case.cos, case.sin)]
    if case.pairing == "half":
        cos, sin = (torch.from_numpy(case.full(t)).to(kind)[:, None, :] for t in (case.cos, case.sin))
        forms = [("rotate_half", half, (x, cos, sin))]
    else:
        cos, sin = (t.to(kind).contiguous() for t in tables)
        turns = torch.complex(*(t.float() for t in tables))
        forms = [("even and odd", interleaved, (x, cos, sin)), ("complex", complex_product, (x, turns))]
    torch.compiler.reset()  # else it gives up compiling after some shapes, and runs eagerly without a word
    made = []
    for name, form, arguments in forms:
        made.append(contender(f"PyTorch eager, {name}", form, arguments))
        if form is not complex_product:  # the compiler leaves complex numbers to eager code
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compiled = torch.compile(form, dynamic=False)
                compiled(*arguments)
            made.append(contender(f"torch.compile, {name}", compiled, arguments))
    return made


def contender(name, form, arguments):
    out = [None]

    def call():
        out[0] = form(*arguments)
    return Contender(name, call, lambda: out[0].double().numpy())
