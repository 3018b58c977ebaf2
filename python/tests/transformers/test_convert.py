"""Small random models of transformers, converted: the other rotation gives the same logits, the old one does not.
SPDX-License-Identifier: MIT"""
import importlib
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import posenc  # noqa: E402

SMALL = {"hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 97, "max_position_embeddings": 64}
MODELS = {
    "Llama": {"attention_bias": True},
    "Qwen2": {},
    "Qwen3": {"head_dim": 16},  # norms of q and k heads
    "Olmo2": {},  # norms over all heads
    "Phi": {"partial_rotary_factor": 0.5},
    "StableLm": {"partial_rotary_factor": 0.25, "use_qkv_bias": True},
    "GPTNeoX": {"rotary_pct": 0.5, "num_key_value_heads": 4},  # q, k, v of each head in one tensor
    "Falcon": {"new_decoder_architecture": True, "num_kv_heads": 2, "alibi": False},  # of each k head with its q heads
    "Phi3": {"pad_token_id": 0},  # q, k, v one after the other in one tensor
    "Glm": {"head_dim": 16, "partial_rotary_factor": 0.5, "pad_token_id": 0},  # interleaved
    "Cohere": {},  # interleaved
}
TOKENS = torch.arange(23)[None] * 7 % 97


def turn(x, cos, sin, pairing):
    """Channels (2j, 2j+1) or (j, j + width/2) of the first channels, as many as cos has."""
    width = cos.shape[-1]
    first, rest = x[..., :width], x[..., width:]
    a, b = (first[..., 0::2], first[..., 1::2]) if pairing == "interleaved" else first.chunk(2, -1)
    cos, sin = cos[..., :width // 2], sin[..., :width // 2]
    parts = a * cos - b * sin, b * cos + a * sin
    both = torch.stack(parts, -1).flatten(-2) if pairing == "interleaved" else torch.cat(parts, -1)
    return torch.cat([both, rest], -1)


def rotation(pairing, repeated):
    """What takes the place of a modeling file's apply_rotary_pos_emb; `repeated`: its rows have every number twice."""
    def apply(q, k, cos, sin, *more, unsqueeze_dim=1, **options):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        if repeated:
            cos, sin = (torch.cat([x[..., 0::2], x[..., 0::2]], -1) for x in (cos, sin))
        return turn(q, cos, sin, pairing), turn(k, cos, sin, pairing)
    return apply


def random_model(name, options):
    torch.manual_seed(11)
    config = getattr(transformers, name + "Config")(**{**SMALL, **options})
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1 if parameter.ndim == 1 else 0))
    return model


def logits(model):
    with torch.no_grad():
        return model(TOKENS).logits


@pytest.mark.parametrize("name", MODELS)
def test_the_other_rotation_gives_the_same_logits(name, tmp_path, monkeypatch):
    model = random_model(name, MODELS[name])
    wanted = logits(model)
    model.save_pretrained(tmp_path / "in")
    native = posenc.inspect(tmp_path / "in")["layer_types"][0]["pairing"]
    to = "half" if native == "interleaved" else "interleaved"
    answer = posenc.convert_checkpoint(tmp_path / "in", tmp_path / "out", to)
    assert answer["implied"] == native and any(r["code"] == "reads-wrongly" for r in answer["remarks"])
    turned = type(model).from_pretrained(tmp_path / "out").eval()
    scale = wanted.abs().max()
    assert (logits(turned) - wanted).abs().max() > 0.02 * scale  # the model's own rotation is now the wrong one
    modeling = importlib.import_module(type(model).__module__)
    monkeypatch.setattr(modeling, "apply_rotary_pos_emb", rotation(native, name == "Cohere"))
    assert (logits(model) - wanted).abs().max() < 1e-4 * scale  # the stand-in is a rotation of the old kind
    monkeypatch.setattr(modeling, "apply_rotary_pos_emb", rotation(to, name == "Cohere"))
    assert (logits(turned) - wanted).abs().max() < 1e-4 * scale
    posenc.convert_checkpoint(tmp_path / "out", tmp_path / "back", native)
    for path in (tmp_path / "in").iterdir():
        assert (tmp_path / "back" / path.name).read_bytes() == path.read_bytes(), path.name


def test_latent_attention_by_its_own_switch(tmp_path):
    """DeepSeek-V3 reads halves where rope_interleave is false."""
    model = random_model("DeepseekV3", {
        "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8,
        "v_head_dim": 12, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
        "moe_intermediate_size": 16, "first_k_dense_replace": 2})
    wanted = logits(model)
    model.save_pretrained(tmp_path / "in")
    posenc.convert_checkpoint(tmp_path / "in", tmp_path / "out", "half")
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (logits(type(model).from_pretrained(tmp_path / "out").eval()) - wanted).abs().max() > 0.02 * wanted.abs().max()
    (tmp_path / "out/config.json").write_text(json.dumps({**config, "rope_interleave": False}))
    turned = type(model).from_pretrained(tmp_path / "out").eval()
    assert (logits(turned) - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert posenc.inspect(tmp_path / "out")["layer_types"][0]["pairing"] == "half"
