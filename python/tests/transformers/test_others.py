"""Families without rotary modules: use() refuses and changes nothing; the rules of ALiBi and RoFormer are ours.
SPDX-License-Identifier: MIT"""
import sys

from families import WITHOUT, pytest, small_model, torch
from test_models import TOLERANCE, logits, tokens

import posenc
import posenc.transformers

MASK = torch.ones(2, 11, dtype=torch.long)
MASK[1, :4] = 0


def numbers(name, model, **more):
    ids = tokens(2, 11)
    mask = {} if name == "mpt" else {"attention_mask": MASK}  # mpt's own bias knows no padding
    with torch.no_grad():
        made = logits(model(input_ids=ids, **mask, **more))
    return made[MASK.bool()]


def modeling(model):
    return sys.modules[type(model).__module__]


@pytest.mark.parametrize("name", WITHOUT)
def test_refused_and_unchanged(name):
    model = small_model(name)
    wanted = numbers(name, model)
    with pytest.raises(ValueError, match="says alibi" if name == "falcon-alibi" else "no rotary embedding module"):
        posenc.transformers.use(model)
    assert torch.equal(numbers(name, model), wanted)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 12, 16, 40, 71])
def test_slopes(heads):
    """bloom and mpt have the paper's slopes: powers of a base that was rounded to float32. falcon rounds them to bfloat16."""
    from transformers.models.bloom import modeling_bloom
    from transformers.models.falcon import modeling_falcon
    from transformers.models.mpt import modeling_mpt

    wanted = torch.from_numpy(posenc.alibi_slopes(heads))
    mask = torch.ones(1, 2, dtype=torch.long)
    found = {"bloom": modeling_bloom.build_alibi_tensor(mask, heads, torch.float32)[:, 0, 1],
             "mpt": -modeling_mpt.build_mpt_alibi_tensor(heads, 2)[:, 0, 0]}
    for name, slopes in found.items():
        assert ((slopes.double() - wanted).abs() <= (heads + 2) * 2.0 ** -24 * wanted).all(), name
    falcon = modeling_falcon.build_alibi_tensor(mask, heads, torch.float32)[:, 0, 1]
    assert ((falcon.double() - wanted).abs() <= 2.0 ** -8 * wanted).all()
    assert heads not in (1, 2, 4) or torch.equal(falcon.double(), wanted)  # powers of two


def padded_bias(mask, heads, dtype):
    """What build_alibi_tensor of bloom and falcon makes, by our slopes and bias."""
    keys = mask.shape[1]
    of_last = torch.from_numpy(posenc.alibi_bias(heads, 1, keys))  # -slope * (keys - 1 - key)
    slopes = torch.from_numpy(posenc.alibi_slopes(heads)).float()
    whole = of_last + slopes[:, None, None] * (keys - 1)
    positions = ((mask.cumsum(-1) - 1) * mask)[:, None, None]
    return torch.gather(whole.expand(len(mask), -1, -1, -1), 3, positions.expand(-1, heads, -1, -1)).reshape(
        len(mask) * heads, 1, keys).to(dtype)


@pytest.mark.parametrize("name", ["bloom", "falcon-alibi"])
def test_models_with_our_bias(name, monkeypatch):
    model = small_model(name)
    wanted = numbers(name, model)
    owner = modeling(model) if name != "bloom" else type(model.transformer)
    assert hasattr(owner, "build_alibi_tensor")

    def replace(factor):
        def ours(mask, heads, dtype):
            return factor * padded_bias(mask, heads, dtype)
        monkeypatch.setattr(owner, "build_alibi_tensor", staticmethod(ours) if name == "bloom" else ours)

    replace(1)
    assert (numbers(name, model) - wanted).abs().max() <= TOLERANCE
    replace(0)  # it would be seen
    assert (numbers(name, model) - wanted).abs().max() > 1000 * TOLERANCE


def test_mpt_with_our_bias(monkeypatch):
    model = small_model("mpt")
    wanted = numbers("mpt", model)

    def ours(self, heads, keys, alibi_bias_max=8, device=None):
        return torch.from_numpy(posenc.alibi_bias(heads, 1, keys, max_bias=alibi_bias_max))

    monkeypatch.setattr(type(model.transformer), "build_mpt_alibi_tensor", ours)
    assert (numbers("mpt", model) - wanted).abs().max() <= TOLERANCE
    monkeypatch.setattr(type(model.transformer), "build_mpt_alibi_tensor", lambda *args, **more: 0 * ours(*args))
    assert (numbers("mpt", model) - wanted).abs().max() > 1000 * TOLERANCE


def test_roformer_with_our_angles_and_rotation(monkeypatch):
    model = small_model("roformer")
    embedding = model.encoder.embed_positions
    embedding.weight.copy_(embedding.create_weight())  # small_model fills every weight
    wanted = numbers("roformer", model)
    attention = type(model.encoder.layer[0].attention.self)
    spec = posenc.RopeSpec(embedding.embedding_dim, pairing="interleaved")
    turned = []

    def rows(shape, cache_length=0, position_ids=None):
        return posenc.sinusoidal(range(cache_length, cache_length + shape[1]), embedding.embedding_dim,
                                 layout="sin-cos", dtype=torch.float32)

    def turn(table, q, k, v=None):
        turned.append(1)
        rotation = posenc.rotation(spec, range(q.shape[2]))
        return posenc.rotate((q, k) if v is None else (q, k, v), rotation)

    monkeypatch.setattr(embedding, "forward", rows)
    assert (numbers("roformer", model) - wanted).abs().max() <= TOLERANCE
    monkeypatch.setattr(attention, "apply_rotary_position_embeddings", staticmethod(turn))
    assert (numbers("roformer", model) - wanted).abs().max() <= TOLERANCE and turned
