"""Families without rotary modules: use() refuses and changes nothing, and their ALiBi is ours. RoFormer, whose attention
turns by a method. SPDX-License-Identifier: MIT"""
import copy
import pickle
import sys

from families import WITHOUT, pytest, small_model, torch
from test_models import TOLERANCE, logits, tokens

import posenc
import posenc.transformers
from posenc import _torch, _transformers_methods, _transformers_rows

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


# --- RoFormer -------------------------------------------------------------------------------------------

def swapped_roformer(mode, name="roformer"):
    own = small_model(name)
    ours = copy.deepcopy(own)
    report = posenc.transformers.use(ours, mode, strict=True)
    assert report.apply == [("RoFormerSelfAttention", "apply_rotary_position_embeddings", "interleaved")]
    assert [row[2] for row in report.rows] == (["sin-cos"] if mode == "exact" else [])
    return own, ours


@pytest.fixture
def turned(monkeypatch):
    """The tensors that were turned by posenc's rows."""
    made, turn = [], _transformers_methods.rotate_by_rows
    monkeypatch.setattr(_transformers_methods, "rotate_by_rows", lambda *args: made.append(args) or turn(*args))
    return made


@pytest.mark.parametrize("mode", ["float32", "exact"])
@pytest.mark.parametrize("rotary_value", [False, True])
def test_roformer(mode, rotary_value, turned):
    own, ours = swapped_roformer(mode)
    for model in (own, ours):
        for module in model.modules():
            if hasattr(module, "rotary_value"):
                module.rotary_value = rotary_value
    wanted = numbers("roformer", own)
    turned.clear()
    found = numbers("roformer", ours)
    assert (found - wanted).abs().max() <= TOLERANCE and len(turned) == 2 * (3 if rotary_value else 2)
    by_spec = posenc.rotate(turned[0][0], posenc.rotation(posenc.RopeSpec(16, pairing="interleaved"), range(11)))
    assert torch.equal(_transformers_methods.rotate_by_rows(*turned[0]), by_spec)
    assert torch.equal(numbers("roformer", copy.deepcopy(ours)), found)
    turned.clear()
    assert torch.equal(numbers("roformer", pickle.loads(pickle.dumps(ours))), wanted) and not turned
    assert list(ours.state_dict()) == list(own.state_dict())
    posenc.transformers.restore(ours)
    assert torch.equal(numbers("roformer", ours), wanted) and not turned
    assert not any(_transformers_rows.is_swapped(module) for module in ours.modules())


@pytest.mark.parametrize("mode", ["float32", "exact"])
def test_roformer_token_by_token_and_in_training(mode, turned):
    own, ours = swapped_roformer(mode, "roformer-decoder")
    ids = tokens(2, 8)

    def steps(model):
        made, kept = [], None
        for at in range(8):
            out = model(input_ids=ids[:, at:at + 1], cache=kept, use_cache=True)
            kept = out.past_key_values if getattr(out, "cache", None) is None else out.cache
            made.append(out.logits)
        return torch.cat(made, 1)

    with torch.no_grad():
        wanted, found = steps(own), steps(ours)
        whole = own(input_ids=ids).logits
    assert (found - wanted).abs().max() <= TOLERANCE and (wanted - whole).abs().max() <= TOLERANCE and turned
    for model in (own, ours):
        model(input_ids=ids, labels=ids).loss.backward()
    for (name, a), b in zip(own.named_parameters(), ours.parameters()):
        assert a.grad is None and b.grad is None or (a.grad - b.grad).abs().max() <= 1e-5, name


@pytest.mark.parametrize("mode", ["float32", "exact"])
def test_roformer_compiled_and_elsewhere(mode, monkeypatch):
    _, ours = swapped_roformer(mode)
    wanted = numbers("roformer", ours)
    counts = []

    def backend(graph, inputs):
        counts.append([sum(word in str(node.target) for node in graph.graph.nodes) for word in ("rotate", "rope_rows")])
        return graph

    torch._dynamo.reset()
    assert torch.equal(numbers("roformer", torch.compile(ours, backend=backend, fullgraph=True)), wanted)
    assert counts == [[4, int(mode == "exact")]]
    torch._dynamo.reset()
    monkeypatch.setattr(_torch, "is_host", lambda x: False)
    assert torch.equal(numbers("roformer", ours), wanted)


def test_roformer_that_is_not_known():
    for change, words in ((lambda table: table.requires_grad_(), "trained"), (lambda table: table.mul_(1.01), "other rows")):
        model = small_model("roformer")
        with torch.no_grad():
            change(model.encoder.embed_positions.weight)
        with pytest.raises(ValueError, match=words):
            posenc.transformers.use(model)


def test_a_method_that_is_not_known(monkeypatch):
    model = small_model("roformer")
    kind = type(model.encoder.layer[0].attention.self)
    original = kind.apply_rotary_position_embeddings
    for other, words in ((lambda table, q, k, v=None: original(table * 2, q, k, *([] if v is None else [v])), "otherwise"),
                         (lambda table: table, "other arguments")):
        monkeypatch.setattr(kind, "apply_rotary_position_embeddings", staticmethod(other))
        with pytest.raises(ValueError, match=words):
            posenc.transformers.use(model)
