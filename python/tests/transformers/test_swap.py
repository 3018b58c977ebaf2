"""What use and restore change and what they do not: training, compilers, copies, saving, dtypes, lengths, bad input.
SPDX-License-Identifier: MIT"""
import copy
import gc
import importlib
import inspect
import json
import pickle
import sys
import weakref

from families import LONGROPE, pytest, small_model, torch, transformers
from test_models import logits as logits_of
from test_models import run

import posenc
import posenc.transformers
from posenc import _torch, _transformers_apply, _transformers_rows

IDS = torch.randint(3, 96, (2, 12), generator=torch.Generator().manual_seed(3))
LLAMA = "transformers.models.llama.modeling_llama"
importlib.import_module(LLAMA)  # transformers loads it with the first model


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    for module in list(_transformers_rows.swapped):
        _transformers_rows.restore_module(module)
    for file in [name for name in list(sys.modules) if name.startswith("transformers.models.")]:
        if ".modeling_" in file:
            _transformers_apply.uninstall(file)


def logits(model, ids=IDS, **more):
    with torch.no_grad():
        return model(input_ids=ids, **more).logits


def apply_function():
    return sys.modules[LLAMA].apply_rotary_pos_emb


def test_report_says_what_is_swapped():
    report = posenc.transformers.use(small_model("llama"))
    assert report.rows == [("model.rotary_emb", "LlamaRotaryEmbedding", "full-half", [])]
    assert report.apply == [("llama.modeling_llama", "apply_rotary_pos_emb", "half")]
    assert report.left_alone == []
    assert "LlamaRotaryEmbedding" in str(report) and "mode float32" in str(report)


def test_other_models_of_the_file_do_not_notice():
    ours, other = small_model("llama"), small_model("llama", seed=1)
    original = apply_function()
    wanted = logits(other)
    posenc.transformers.use(ours)
    assert apply_function() is not original
    assert torch.equal(logits(other), wanted)
    posenc.transformers.use(other)
    posenc.transformers.restore(ours)
    assert apply_function() is not original  # other still needs it
    posenc.transformers.restore(other)
    assert apply_function() is original


@pytest.mark.parametrize("kind,tolerance", [(torch.bfloat16, 0.08), (torch.float16, 0.01), (torch.float64, 1e-6)])
def test_dtypes(kind, tolerance):
    model = small_model("llama").to(kind)
    wanted = logits(model)
    posenc.transformers.use(model)
    found = logits(model)
    assert found.dtype == kind
    assert (found - wanted).abs().max() <= tolerance


def test_bfloat16_rotation_rounds_once():
    """cos and sin stay float32 and the result is rounded once; transformers rounds them and each product."""
    model = small_model("llama").to(torch.bfloat16)
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config)  # float32 frequencies again
    posenc.transformers.use(model)
    positions = torch.arange(12)[None] + 1000
    x = torch.randn(1, 4, 12, 16, generator=torch.Generator().manual_seed(1)).bfloat16()
    cos, sin = model.model.rotary_emb(x, positions)
    assert cos.dtype == torch.bfloat16
    found, _ = apply_function()(x, x, cos, sin)
    spec = posenc.RopeSpec(16)
    exact = posenc.rotate(x.float(), posenc.rotation(spec, positions[0], mode="float32")).bfloat16()
    assert torch.equal(found, exact)
    theirs, _ = apply_function().posenc_original(x, x, cos, sin)
    assert not torch.equal(theirs, exact)


def test_exact_mode_gives_exact_rows():
    model = small_model("llama")
    posenc.transformers.use(model, "exact")
    positions = torch.tensor([[0, 5, 1_000_003]])
    cos, sin = model.model.rotary_emb(torch.zeros(1), positions)
    wanted = posenc.angles(posenc.RopeSpec(16), [0, 5, 1_000_003], layout="full-half", dtype=torch.float32)
    assert torch.equal(cos[0], wanted[0]) and torch.equal(sin[0], wanted[1])


def test_exact_mode_restores_what_a_cast_lost():
    model = small_model("llama").to(torch.bfloat16)
    assert model.model.rotary_emb.inv_freq.dtype == torch.bfloat16
    report = posenc.transformers.use(model, "exact")
    assert "bfloat16" in report.rows[0][3][0]
    cos, _ = model.model.rotary_emb(torch.zeros(1), torch.tensor([[4000]]))
    wanted, _ = posenc.angles(posenc.RopeSpec(16), [4000], layout="full-half", dtype=torch.float32)
    assert torch.equal(cos[0], wanted)
    posenc.transformers.restore(model)
    report = posenc.transformers.use(model)
    assert "keeps it" in report.rows[0][3][0]


def test_only_what_belongs_together_is_turned_by_us():
    """cos of ours with another sin, other shapes, or a copy of cos: the function that was there before."""
    model = small_model("llama")
    posenc.transformers.use(model)
    q = torch.randn(1, 4, 3, 16, generator=torch.Generator().manual_seed(1))
    cos, sin = model.model.rotary_emb(q, torch.arange(3)[None] + 50)
    own, apply = apply_function().posenc_original, apply_function()
    assert torch.equal(apply(q, q, cos, sin)[0], posenc.rotate(q, posenc.rotation(posenc.RopeSpec(16), range(50, 53), mode="float32")))
    for a, b in ((cos, sin * 2), (cos, sin.clone()), (cos * 2, sin), (cos[:, :1], sin[:, :1])):
        assert torch.equal(apply(q, q, a, b)[0], own(q, q, a, b)[0])
    wide = torch.randn(1, 4, 1, 16)
    assert torch.equal(apply(q, wide, cos, sin)[1], own(q, wide, cos, sin)[1])  # one key against three rows


def test_threads_for_large_tensors(monkeypatch):
    model = small_model("llama")
    posenc.transformers.use(model)
    wanted, used = logits(model), []
    threads_for = _torch.threads_for
    monkeypatch.setattr(_torch, "NUMBERS_OF_A_THREAD", 100)
    monkeypatch.setattr(_transformers_apply, "threads_for", lambda x: used.append(threads_for(x)) or used[-1])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(logits(model), wanted) and set(used) == {3}
    assert _torch.threads_for(torch.zeros(250)) == 2 and _torch.threads_for(torch.zeros(3)) == 1


def gradients(model, **more):
    model.zero_grad()
    model(input_ids=IDS, labels=IDS, **more).loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", ["llama", "cohere", "deepseek_v3", "llama4_text", "gptj", "glm4"])
def test_gradients(name):
    model = small_model(name)
    wanted = gradients(model)
    posenc.transformers.use(model)
    found = gradients(model)
    assert set(found) == set(wanted) and any("q" in key for key in found)
    for key, value in wanted.items():
        assert (found[key] - value).abs().max() <= 1e-5 * max(1.0, float(value.abs().max())), key


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing(reentrant):
    model = small_model("llama").train()
    posenc.transformers.use(model)
    wanted = gradients(model)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.enable_input_require_grads()
    found = gradients(model)
    for key, value in wanted.items():
        assert torch.allclose(found[key], value, rtol=1e-4, atol=1e-6), key


def test_autocast():
    model = small_model("llama")
    with torch.autocast("cpu", torch.bfloat16):
        wanted = logits(model)
        posenc.transformers.use(model)
        found = logits(model)
    assert found.dtype == wanted.dtype
    assert (found - wanted).abs().max() < 0.1
    cos, sin = model.model.rotary_emb(torch.zeros(1), torch.arange(3)[None])
    q = torch.ones(1, 4, 3, 16, dtype=torch.bfloat16)  # as in the layers: bfloat16 turned by float32 rows
    for a, b in zip(apply_function()(q, q, cos, sin), apply_function().posenc_original(q, q, cos, sin)):
        assert a.dtype == b.dtype == torch.float32 and torch.allclose(a, b, atol=1e-6)


# --- Compilers --------------------------------------------------------------------------------------------

class Counted:
    """A compiler's backend that runs the graph as it is and counts what posenc does in it."""

    def __init__(self):
        self.graphs = self.rows = self.rotations = 0

    def __call__(self, graph, inputs):
        self.graphs += 1
        targets = [str(node.target) for part in graph.modules() if isinstance(part, torch.fx.GraphModule)
                   for node in part.graph.nodes]
        self.rows += sum("posenc.rope_rows" in target for target in targets)
        self.rotations += sum("posenc.rotate" in target for target in targets)
        return graph


@pytest.fixture
def counted():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield Counted()
    torch._dynamo.reset()


def graph_breaks():
    return sum(torch._dynamo.utils.counters["graph_break"].values())


@pytest.mark.parametrize("mode", ["float32", "exact"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_compiled_model_gives_our_numbers(mode, kind, counted):
    model = small_model("llama").to(kind)
    posenc.transformers.use(model, mode)
    positions = torch.arange(12)[None] + 1_000_000
    wanted = logits(model, position_ids=positions)
    compiled = torch.compile(model, backend=counted, fullgraph=True)
    with torch.no_grad():
        found = compiled(input_ids=IDS, position_ids=positions).logits
    assert torch.equal(found, wanted)
    assert (counted.graphs, counted.rows, counted.rotations) == (1, 1, 4)  # 2 layers, queries and keys
    posenc.transformers.restore(model)
    with torch.no_grad():  # the compiled graph is not used for the restored model
        assert torch.allclose(compiled(input_ids=IDS, position_ids=positions).logits,
                              logits(model, position_ids=positions), atol=1e-5)


# Complex tables pass .to(device), behind which a compiler sees a tensor that nobody marked.
COMPLEX = ("llama4_text", "deepseek_v2")


@pytest.mark.parametrize("name", ["cohere", "deepseek_v3", "deepseek_v4", "glm4v_text", "gptj", "gpt_oss", "moonshine",
                                  "nanochat", "phi3-longrope", "qwen2_vl_text", *COMPLEX])
def test_compiled_families(name, counted, monkeypatch):
    """Of each way of laying rows out and of turning by them one."""
    own = small_model(name)
    model = copy.deepcopy(own)
    posenc.transformers.use(model)
    positions = torch.arange(12).expand(2, 12)
    turned = []
    turn = _transformers_apply.turn
    with torch.no_grad():
        logits_of(run(torch.compile(own, backend="eager"), name, IDS, positions))
        before = graph_breaks()
        found = logits_of(run(torch.compile(model, backend=counted), name, IDS, positions))
        assert graph_breaks() == 2 * before
        monkeypatch.setattr(_transformers_apply, "turn", lambda *args: turned.append(1) or turn(*args))
        wanted = logits_of(run(model, name, IDS, positions))
    assert turned and counted.rotations == (0 if name in COMPLEX else len(turned))
    assert (found - wanted).abs().max() <= (1e-5 if name in COMPLEX else 0)


def test_compiled_by_the_default_backend():
    torch._dynamo.reset()
    model = small_model("llama", num_hidden_layers=1)
    posenc.transformers.use(model)
    wanted = gradients(model)
    model.forward = torch.compile(model.forward, fullgraph=True)
    for key, value in gradients(model).items():
        assert (value - wanted[key]).abs().max() <= 1e-5, key


def test_compiled_models_beside_ours_do_not_notice(counted):
    ours, other = small_model("llama"), small_model("llama", seed=1)
    wanted = logits(other)
    posenc.transformers.use(ours)
    with torch.no_grad():
        assert torch.equal(torch.compile(other, backend=counted)(input_ids=IDS).logits, wanted)
    assert counted.rotations == 0


def test_layers_compiled_one_by_one(counted):
    """The rows are made outside of the graphs, and new ones do not compile anew."""
    model = small_model("llama")
    posenc.transformers.use(model)
    wanted = [logits(model, IDS[:, :count]) for count in (12, 7, 5)]
    for layer in model.model.layers:
        layer.forward = torch.compile(layer.forward, backend=counted, dynamic=True)
    for count, right in zip((12, 7, 5), wanted):
        assert torch.equal(logits(model, IDS[:, :count]), right)
    assert (counted.graphs, counted.rows, counted.rotations) == (2, 0, 4) and graph_breaks() == 0


def test_a_broken_graph_keeps_our_rotation(counted):
    model = small_model("llama")
    posenc.transformers.use(model)
    wanted = logits(model)
    first = model.model.layers[0].forward

    def breaking(*args, **kwargs):
        torch._dynamo.graph_break()
        return first(*args, **kwargs)

    model.model.layers[0].forward = breaking
    with torch.no_grad():
        assert torch.equal(torch.compile(model, backend=counted)(input_ids=IDS).logits, wanted)
    assert counted.graphs > 1 and counted.rotations == 4


def test_export_and_trace_have_our_rows():
    model = small_model("llama")
    posenc.transformers.use(model, "exact")
    more = {"input_ids": IDS, "position_ids": torch.arange(12)[None] + 1_000_000, "use_cache": False}
    program = torch.export.export(model, (), more)
    graphs = [part.graph for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    assert any("rope_rows" in str(graph) for graph in graphs)  # in a part of its own, since it takes no gradient
    assert any("posenc.rotate" in str(graph) for graph in graphs)
    with torch.no_grad():
        assert (program.module()(**more).logits - model(**more).logits).abs().max() <= 1e-5
    rotary, far = model.model.rotary_emb, torch.tensor([[1_000_003, 5]])
    traced = torch.jit.trace(rotary, (torch.zeros(1), torch.tensor([[0, 1]])))
    assert torch.equal(traced(torch.zeros(1), far)[0], rotary(torch.zeros(1), far)[0])


def test_saving_and_loading(tmp_path):
    model = small_model("llama")
    keys, classes = list(model.state_dict()), [type(module).__name__ for module in model.modules()]
    wanted = logits(model)
    posenc.transformers.use(model)
    assert list(model.state_dict()) == keys
    assert [type(module).__name__ for module in model.modules()] == classes
    assert isinstance(model.model.rotary_emb, sys.modules[LLAMA].LlamaRotaryEmbedding)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert torch.equal(logits(loaded), wanted)  # a loaded model is transformers' own
    loaded.load_state_dict(model.state_dict())
    posenc.transformers.use(loaded)
    assert torch.equal(logits(loaded), logits(model))


def test_copies_are_swapped_and_pickles_are_not():
    model = small_model("llama")
    wanted = logits(model)
    posenc.transformers.use(model, "exact")
    other = copy.deepcopy(model)
    assert torch.equal(logits(other), logits(model))
    assert not torch.equal(logits(other), wanted)
    plain = pickle.loads(pickle.dumps(model))
    assert torch.equal(logits(plain), wanted)
    posenc.transformers.restore(other)
    assert torch.equal(logits(other), wanted)
    assert not torch.equal(logits(model), wanted)


@pytest.mark.parametrize("name", ["llama-dynamic", "phi3-longrope", "phimoe"])
@pytest.mark.parametrize("mode", ["float32", "exact"])
def test_lengths_switch_as_in_transformers(name, mode):
    more = {"max_position_embeddings": 64} if name == "llama-dynamic" else {}
    if name == "phimoe":
        more = {"rope_parameters": {**LONGROPE, "short_mscale": 1.1, "long_mscale": 1.3},
                "max_position_embeddings": 256}
    own = small_model(name, **more)
    ours = copy.deepcopy(own)
    posenc.transformers.use(ours, mode)
    sizes = []
    for last in (20, 63, 64, 65, 200, 100, 64, 63, 30, 150):
        positions = torch.tensor([[0, 1, last - 1]])
        wanted = own.model.rotary_emb(torch.zeros(1), positions)
        found = ours.model.rotary_emb(torch.zeros(1), positions)
        for a, b in zip(found, wanted):
            assert (a - b).abs().max() <= (1e-6 if mode == "float32" else 3e-5), last
        sizes.append(float(wanted[0][0, 1, 3]))
    assert len(set(sizes)) > 1  # they do switch


def test_exact_dynamic_at_its_own_length():
    model = small_model("llama-dynamic", max_position_embeddings=64)
    posenc.transformers.use(model, "exact")
    spec = posenc.RopeSpec(16, scaling={"rope_type": "dynamic", "factor": 2.0}, max_positions=64)
    for last in (30, 300, 1000):
        cos, _ = model.model.rotary_emb(torch.zeros(1), torch.tensor([[last - 1]]))
        wanted, _ = posenc.angles(spec, [last - 1], seq_len=last, layout="full-half", dtype=torch.float32)
        assert torch.equal(cos[0], wanted)


@pytest.mark.parametrize("name", ["llama", "gptj", "qwen2_vl_text", "llama4_text"])
def test_rows_are_let_go_with_their_tensors(name):
    """What hangs on cos does not hold it, or each forward pass would keep its rows until a collection."""
    model = small_model(name)
    posenc.transformers.use(model)
    rotary = next(module for module in model.modules() if _transformers_rows.is_swapped(module))
    gc.disable()
    try:
        made = rotary(torch.zeros(1), torch.arange(5)[None])
        bearer = next(x for x in (made if isinstance(made, tuple) else (made,)) if hasattr(x, "_posenc"))
        tag = weakref.ref(bearer)
        del made, bearer
        assert tag() is None
    finally:
        gc.enable()


def test_generate():
    model = small_model("llama", eos_token_id=None)
    wanted = model.generate(IDS, max_new_tokens=8, do_sample=False)
    posenc.transformers.use(model)
    assert torch.equal(model.generate(IDS, max_new_tokens=8, do_sample=False), wanted)


# --- Other devices ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["llama", "cohere", "deepseek_v3", "deepseek_v4", "llama4_text", "gptj", "qwen2_vl_text",
                                  "nanochat"])
def test_operations_of_other_devices_give_the_same_numbers(name, monkeypatch):
    """The CPU taken for another device."""
    model = small_model(name)
    posenc.transformers.use(model)
    positions = torch.arange(12).expand(2, 12) + 100 * (name != "gptj")
    with torch.no_grad():
        wanted = logits_of(run(model, name, IDS, positions))
    if name != "qwen2_vl_text":
        of_weights = gradients(model)
    turned = []
    turn = _torch.turn_channels
    for file in (_torch, _transformers_apply):
        monkeypatch.setattr(file, "is_host", lambda x: False)
    monkeypatch.setattr(_torch, "turn_channels", lambda *args: turned.append(1) or turn(*args))
    with torch.no_grad():
        assert torch.equal(logits_of(run(model, name, IDS, positions)), wanted)
    assert turned
    if name != "qwen2_vl_text":
        for key, value in gradients(model).items():
            assert torch.allclose(value, of_weights[key], rtol=1e-4, atol=1e-6), key


@pytest.mark.parametrize("mode", ["float32", "exact"])
@pytest.mark.parametrize("name", ["llama", "cohere", "llama4_text", "deepseek_v3"])
def test_a_second_device(name, mode, monkeypatch):
    """Tensors that stand for those of a GPU: rows and rotations end there, the rows by one move."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    model = small_model(name)
    file, function, _ = posenc.transformers.use(model, mode).apply[0]
    apply = getattr(sys.modules["transformers.models." + file], function)
    rotary = next(module for module in model.modules() if _transformers_rows.is_swapped(module))
    turned = []
    turn = _torch.turn_channels
    monkeypatch.setattr(_torch, "turn_channels", lambda *args: turned.append(args[1]) or turn(*args))
    with FakeTensorMode(), torch.no_grad():
        for key, value in rotary._buffers.items():
            rotary._buffers[key] = torch.empty(value.shape, dtype=value.dtype, device="cuda")
        q = torch.empty((2, 5, 4, rotary.inv_freq.shape[-1] * 2), dtype=torch.bfloat16, device="cuda")
        q = q if name == "llama4_text" else q.transpose(1, 2)
        tables = rotary(q, torch.zeros(2, 5, dtype=torch.long, device="cuda"))
        made = apply(q, q, *(tables if isinstance(tables, tuple) else (tables,)))
    assert len(turned) == 2
    assert all(x.device.type == "cuda" and x.dtype == q.dtype and x.shape == q.shape for x in made)
    assert all(table.device.type == "cuda" and table.dtype == torch.float32 for tables in turned for table in tables)


def test_the_report_names_another_device():
    model = small_model("llama")
    model.lm_head.weight = torch.nn.Parameter(Elsewhere(model.lm_head.weight.detach()))
    report = posenc.transformers.use(model)
    assert "on cuda:1: rows are moved there once" in report.rows[0][3][0]


class Elsewhere(torch.Tensor):
    device = property(lambda self: torch.device("cuda", 1))


# --- Bad input ------------------------------------------------------------------------------------------

def refused(model, match, error=ValueError, **more):
    before = [type(module) for module in model.modules()] if isinstance(model, torch.nn.Module) else None
    function = apply_function()
    with pytest.raises(error, match=match):
        posenc.transformers.use(model, **more)
    if before is not None:
        assert [type(module) for module in model.modules()] == before
    assert apply_function() is function


def test_refused():
    model = small_model("llama")
    refused(model, "mode is 'fast' but must be", mode="fast")
    refused("llama", "model is of type str", TypeError)
    refused(torch.nn.Linear(2, 2), "no rotary embedding module")
    posenc.transformers.use(model)
    with pytest.raises(ValueError, match="swapped already"):
        posenc.transformers.use(model)
    posenc.transformers.restore(model)
    with pytest.raises(ValueError, match="model is not swapped"):
        posenc.transformers.restore(model)
    with pytest.raises(TypeError, match="model is of type int"):
        posenc.transformers.restore(3)


def test_meta_device_is_refused():
    model = small_model("llama").to("meta")
    refused(model, "meta device")


def test_replaced_forward_is_left_alone():
    model = small_model("llama")
    rotary = model.model.rotary_emb
    rotary.forward = rotary.forward
    refused(model, "replaced on the instance")


class Strange(torch.nn.Module):
    """Remote code whose rows are no rotation of any form tried."""

    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", torch.tensor([1.0, 0.1]), persistent=False)
        self.attention_scaling = 1.0

    def forward(self, x, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq + 0.25
        return freqs.cos(), freqs.sin()


class Familiar(Strange):
    """Remote code that does what transformers' modules do."""

    def forward(self, x, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), -1)
        return emb.cos(), emb.sin()


def test_remote_code_is_tried():
    refused(torch.nn.Sequential(Strange()), "differ from every form")
    model = torch.nn.Sequential(Familiar())
    report = posenc.transformers.use(model)
    assert report.rows[0][:3] == ("0", "Familiar", "full-half")
    posenc.transformers.restore(model)
    both = torch.nn.Sequential(Familiar(), Strange())
    refused(both, "strict is given", strict=True)
    report = posenc.transformers.use(both)
    assert len(report.rows) == 1 and "every form" in report.left_alone[0][1]


REMOTE = '''
import torch
from transformers import PretrainedConfig, PreTrainedModel


class OwnConfig(PretrainedConfig):
    model_type = "own_rotary"


class OwnRotaryEmbedding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, 8, 2).float() / 8), persistent=False)

    def forward(self, x, position_ids):
        freqs = (position_ids[..., None].float() * self.inv_freq).repeat_interleave(2, -1)
        return freqs.cos(), freqs.sin()


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_every_two(q) * sin, k * cos + rotate_every_two(k) * sin


class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    _no_split_modules = []

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(97, 48)
        self.rotary = OwnRotaryEmbedding()
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids):
        q, k, v = self.embed(input_ids).unflatten(-1, (6, 8)).transpose(1, 2).chunk(3, 1)
        q, k = apply_rotary(q, k, *self.rotary(q, torch.arange(input_ids.shape[1])[None] + 1000))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
'''


@pytest.mark.parametrize("mode", ["float32", "exact"])
def test_a_model_of_remote_code(mode, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "modeling_own.py").write_text(REMOTE)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "own_rotary", "auto_map": {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}}))
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
    model = transformers.AutoModel.from_config(config, trust_remote_code=True).eval()
    assert type(model).__module__.startswith("transformers_modules")
    with torch.no_grad():
        wanted = model(IDS)
        report = posenc.transformers.use(model, mode, strict=True)
        found = model(IDS)
        posenc.transformers.restore(model)
        again = model(IDS)
    assert [row[1:3] for row in report.rows] == [("OwnRotaryEmbedding", "full-interleaved")]
    assert [(name, what) for _, name, what in report.apply] == [("apply_rotary", "interleaved")]
    assert (found - wanted).abs().max() <= (1e-5 if mode == "float32" else 1e-3)
    assert not torch.equal(found, wanted) and torch.equal(again, wanted)


@pytest.mark.parametrize("file,name", [("rows", "swap_module"), ("apply", "install")])
@pytest.mark.parametrize("at", [0, 1])
def test_a_failure_on_the_way_leaves_the_model_as_it_was(file, name, at, monkeypatch):
    """Two modeling files, two rotary modules: the first or the second swap fails."""
    model = torch.nn.ModuleList((small_model("llama"), small_model("cohere")))
    wanted = [logits(part) for part in model]
    cohere = sys.modules["transformers.models.cohere.modeling_cohere"]
    functions = apply_function(), cohere.apply_rotary_pos_emb
    owner = {"rows": _transformers_rows, "apply": _transformers_apply}[file]
    done, work = [], getattr(owner, name)

    def fails(*args):
        if len(done) == at:
            raise KeyboardInterrupt("on purpose")
        done.append(1)
        return work(*args)

    monkeypatch.setattr(owner, name, fails)
    refused(model, "on purpose", KeyboardInterrupt)
    assert len(done) == at and not list(_transformers_rows.swapped)
    assert (apply_function(), cohere.apply_rotary_pos_emb) == functions
    assert all(torch.equal(logits(part), right) for part, right in zip(model, wanted))


def test_unknown_function_is_left_alone(monkeypatch):
    """A function that turns otherwise is tried, told from the known ones, and not replaced."""
    def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return q * cos + q.flip(-1) * sin, k * cos + k.flip(-1) * sin

    monkeypatch.setattr(sys.modules[LLAMA], "apply_rotary_pos_emb", apply_rotary_pos_emb)
    model = small_model("llama")
    wanted = logits(model)
    report = posenc.transformers.use(model)
    assert report.apply == [] and report.left_alone[0][0] == "llama.modeling_llama.apply_rotary_pos_emb"
    assert sys.modules[LLAMA].apply_rotary_pos_emb is apply_rotary_pos_emb
    assert (logits(model) - wanted).abs().max() <= 1e-5


def test_functions_that_are_modules(monkeypatch):
    """With the package kernels, transformers' decorator makes a module of each function."""
    class Func(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return original(*args, **kwargs)

    model = small_model("llama")
    original = apply_function()
    Func.forward.__signature__ = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
         *inspect.signature(original).parameters.values()])
    function = Func()
    monkeypatch.setattr(sys.modules[LLAMA], "apply_rotary_pos_emb", function)
    wanted = logits(model)
    report = posenc.transformers.use(model)
    assert report.apply == [("llama.modeling_llama", "apply_rotary_pos_emb", "half")]
    assert (logits(model) - wanted).abs().max() <= 1e-5 and not torch.equal(logits(model), wanted)
    posenc.transformers.restore(model)
    assert apply_function() is function and torch.equal(logits(model), wanted)
