"""Attention modules of transformers that turn by a method of their own, from rows that are an embedding of the model:
RoFormer. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import torch

from ._rotation import angles
from ._spec import RopeSpec
from ._torch import FORWARD, rotate_by_rows
from ._transformers_rows import ExactSource, LeftAlone, numbers, rows, sources, subclass_of

METHOD = "apply_rotary_position_embeddings"
INTERLEAVED = 1


def turn(sinusoidal_pos, query_layer, key_layer, value_layer=None):
    """sinusoidal_pos: (1, 1, tokens, head_dim), sin and then cos of each pair; layers: (batch, heads, tokens, head_dim)."""
    sin, cos = sinusoidal_pos[0, 0].detach().chunk(2, -1)
    layers = (query_layer, key_layer) if value_layer is None else (query_layer, key_layer, value_layer)
    return tuple(rotate_by_rows(x, cos, sin, "bhtd", 0, FORWARD, INTERLEAVED, INTERLEAVED, x.dtype) for x in layers)


class MethodPlan:
    """Of an attention module: its method is ours."""

    def class_for(self, original):
        return subclass_of(original, MethodPlan, {METHOD: staticmethod(turn)})


class TablePlan:
    """Of the embedding of positions, in mode 'exact': rows that are made in place of those that are kept."""

    def __init__(self, width):
        self.inv_freq = torch.zeros(width // 2)  # only its length is read
        self.exact = ExactSource(RopeSpec(width), ())
        self.source = next(numbers)
        sources[self.source] = self.exact

    def class_for(self, original):
        return subclass_of(original, TablePlan, {"forward": exact_table})


def exact_table(self, input_ids_shape, cache_length=0, position_ids=None):
    """(tokens, head_dim) float32 for the tokens from cache_length on."""
    device = self.weight.device
    if position_ids is None:
        position_ids = torch.arange(cache_length, cache_length + input_ids_shape[1], device=device)
    plan = self._posenc_plan
    with torch.no_grad():
        cos, sin = rows(position_ids, plan.inv_freq, None, plan.source, 0, False)
        return torch.cat((sin, cos), -1).to(device)


def turns_by_method(module):
    return callable(getattr(type(module), METHOD, None))


def method_plans(model, mode):
    """(name, module, plan) of attention modules and, in mode 'exact', of the embeddings that hold their rows; or
    LeftAlone."""
    turning = [(name, module) for name, module in model.named_modules() if turns_by_method(module)]
    if not turning:
        return []
    for kind in {type(module) for _, module in turning}:
        check_method(getattr(kind, METHOD))
    tables = [(name, module) for name, module in model.named_modules() if name.split(".")[-1] == "embed_positions"]
    for name, module in tables:
        check_table(name, module)
    plans = [(name, module, MethodPlan()) for name, module in turning]
    if mode == "exact":
        plans += [(name, module, TablePlan(module.embedding_dim)) for name, module in tables]
    return plans


def check_method(method):
    """Tried with random numbers, with and without values."""
    generator = torch.Generator().manual_seed(7)
    turns = torch.rand((1, 1, 5, 4), generator=generator) * 6 - 3
    table = torch.cat((turns.sin(), turns.cos()), -1)
    layers = [torch.randn((2, 3, 5, 8), generator=generator) for _ in range(3)]
    for count in (2, 3):
        try:
            wanted = method(table, *layers[:count])
        except Exception:
            raise LeftAlone(f"{METHOD} takes other arguments than those that were tried") from None
        if any(not torch.allclose(a, b, rtol=1e-6, atol=2e-6) for a, b in zip(turn(table, *layers[:count]), wanted)):
            raise LeftAlone(f"{METHOD} turns otherwise than what was tried")


def check_table(name, module):
    """The rows must be those of base 10000 to the last places of their dtype, and stay so."""
    if not isinstance(module, torch.nn.Embedding) or module.weight.device.type == "meta":
        raise LeftAlone(f"{name} is no embedding with numbers")
    if module.weight.requires_grad:
        raise LeftAlone(f"{name} is trained, which changes the angles")
    count = min(len(module.weight), 64)
    cos, sin = angles(RopeSpec(module.embedding_dim), range(count), dtype=torch.float32)
    own = module.weight[:count].detach().cpu().float()
    if (own - torch.cat((sin, cos), -1)).abs().max() > max(2.0 ** -22, torch.finfo(module.weight.dtype).eps):
        raise LeftAlone(f"{name} holds other rows than those of base 10000")
