"""Parity of models: the same numbers before and after, in mode float32. SPDX-License-Identifier: MIT"""
import copy
import functools

from families import FAMILIES, pytest, small_model, takes, torch

import posenc.transformers
from posenc import _transformers_apply

TOLERANCE = 1e-5  # of numbers of about 4
STARTS = (0, 100_000, 1_000_000)
# transformers keeps rows of the first max_position_embeddings positions, or learns those positions, and has no others.
BOUNDED = {"gptj", "codegen"}
# An encoder, or an encoder and decoder: no cache token by token.
NO_CACHE = {"esm", "modernbert", "eurobert", "nomic_bert", "jina_embeddings_v3", "moonshine"}


@functools.lru_cache(maxsize=None)
def models(name):
    """transformers' own, and a copy that takes angles and rotations from posenc."""
    own = small_model(name)
    ours = copy.deepcopy(own)
    posenc.transformers.use(ours, strict=True)
    return own, ours


def logits(made):
    return made.logits if getattr(made, "logits", None) is not None else made.last_hidden_state


def run(model, name, ids, positions=None, **more):
    if name == "moonshine":
        sound = torch.randn(ids.shape[0], 4000, generator=torch.Generator().manual_seed(1))
        return model(input_values=sound, decoder_input_ids=ids,
                     **({} if positions is None else {"decoder_position_ids": positions}), **more)
    if positions is not None:
        more["position_ids"] = positions
    return model(input_ids=ids, **more)


def tokens(batch, count, seed=2):
    return torch.randint(3, 96, (batch, count), generator=torch.Generator().manual_seed(seed))


def check(name, work):
    """work(model) gives the same numbers for both models."""
    own, ours = models(name)
    with torch.no_grad():
        wanted, found = work(own), work(ours)
    assert torch.isfinite(wanted).all()
    assert (wanted - found).abs().max() <= TOLERANCE
    return wanted


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", FAMILIES)
def test_positions_from(name, start, monkeypatch):
    if name in BOUNDED and start:
        pytest.skip(f"{name} of transformers has no rows beyond its maximum")
    turned = []
    turn = _transformers_apply.turn
    monkeypatch.setattr(_transformers_apply, "turn", lambda *args: turned.append(1) or turn(*args))
    positions = torch.stack((torch.arange(11), torch.arange(11) + 17)) + start
    wanted = check(name, lambda model: logits(run(model, name, tokens(2, 11), positions)))
    assert turned
    with torch.no_grad():  # what the test would see if rotations were wrong
        other = logits(run(models(name)[0], name, tokens(2, 11), positions * 3 if not start else positions.flip(1)))
    assert (wanted - other).abs().max() > 1000 * TOLERANCE


@pytest.mark.parametrize("name", FAMILIES)
def test_left_padding(name):
    mask = torch.ones(3, 11, dtype=torch.long)
    mask[1, :4] = 0
    mask[2, :7] = 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    names = {"decoder_attention_mask": mask} if name == "moonshine" else {"attention_mask": mask}

    def work(model):
        made = logits(run(model, name, tokens(3, 11) * mask, positions, **names))
        return made[mask.bool()]

    check(name, work)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NO_CACHE])
def test_cache_token_by_token(name):
    ids = tokens(2, 12)

    def work(model):
        made = run(model, name, ids[:, :6], use_cache=True)
        found = [logits(made)]
        for at in range(6, 12):
            kept = {argument: getattr(made, argument) for argument in ("cache", "past_key_values")
                    if takes(model, argument)}
            made = run(model, name, ids[:, at:at + 1], use_cache=True, **kept)
            found.append(logits(made))
        return torch.cat(found, 1)

    whole = check(name, work)
    assert whole.shape[1] == 12


@pytest.mark.parametrize("name", FAMILIES)
def test_exact_mode_is_near_and_restore_brings_all_back(name):
    model = copy.deepcopy(models(name)[0])
    state = copy.deepcopy(model)  # dynamic and longrope remember lengths
    with torch.no_grad():
        wanted = logits(run(state, name, tokens(2, 11)))
        report = posenc.transformers.use(model, "exact", strict=True)
        exact = logits(run(model, name, tokens(2, 11)))
        posenc.transformers.restore(model)
        again = logits(run(model, name, tokens(2, 11)))
    assert report.mode == "exact"
    assert (exact - wanted).abs().max() < 1e-4
    assert torch.equal(again, wanted)


MULTI_AXIS = ("qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "glm4v_text")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", MULTI_AXIS)
def test_positions_on_several_axes(name, start):
    token = torch.arange(11)
    positions = torch.stack([torch.stack((token, token // (axis + 2) + 5 * axis)) for axis in range(3)]) + start
    check(name, lambda model: logits(run(model, name, tokens(2, 11), positions)))


def test_there_are_families_enough():
    assert len(FAMILIES) >= 90
