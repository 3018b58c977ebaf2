#!/usr/bin/env python3
"""posenc inspect against Hugging Face transformers, on real configurations: test_model_oracle.py PROGRAM [NAME ...]

For every configuration beside the clone that transformers knows, and for every model_type of transformers by a
file that says nothing else, its own rotary module is built from the file; kind, widths, inverse frequencies
(2 float32 ulp), attention factor, pairing (by turning unit vectors) and, where a forward pass on the meta device
runs, which layers rotate must be the same. The work is split among processes that share one import. Skips by name
where transformers, PyTorch or the configurations are absent. SPDX-License-Identifier: MIT
"""
import importlib
import inspect
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

PROGRAM = None
CONFIGS = Path(os.environ.get("POSENC_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data/configs"

RULES = {line.split("\t")[1]: line.split("\t")[2] for line in (Path(__file__).resolve().parents[1] / "data/models.tsv").read_text().splitlines()
         if line.startswith("config\t")}

# What transformers is known to do differently from the released model; every entry says why it is right to differ.
DIFFERS = {
    "minimax_m3_vl_text": "transformers does not read rotary_dim and turns the whole head",
    "dbrx": "transformers does not read attn_config.rope_theta, which the model was trained with",
}


# They rotate without a module that takes a configuration.
NO_MODULE = ("gptj", "codegen", "esm", "roformer", "clvp_encoder", "vjepa2")


# Types whose bare file says nothing that can be compared, and keys that no real configuration here has.
FILES = {
    "blt": {"model_type": "blt_local_decoder", "num_attention_heads": 8},
    "cohere compass": {
        "model_type": "cohere_compass_text", "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 50000.0}, "full_attention": None}},
    "dory": {"model_type": "dory", "num_hidden_layers": 2, "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0},
        "full_attention": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 2048}}},
    "dots3 note": {"model_type": "dots3_note_text", "num_hidden_layers": 4, "swa_rope_theta": 30000.0, "rope_theta": 1e6},
    "glm4 moe": {"model_type": "glm4_moe", "head_dim": 128, "partial_rotary_factor": 0.5},
    "glm4v": {"model_type": "glm4v_text", "hidden_size": 4096, "num_attention_heads": 32, "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}},
    "glm image": {"model_type": "glm_image_text", "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}},
    "mistral large 4": {"model_type": "mistral_large4_text", "num_hidden_layers": 4, "no_rope_layers": [0, 1, 1, 0]},
    "mllama": {"model_type": "mllama_text_model", "num_hidden_layers": 4, "cross_attention_layers": [1, 3]},
    "molmo2": {"model_type": "molmo2_text", "num_hidden_layers": 3, "rope_scaling_layers": [1], "rope_parameters": {
        "rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}},
    "qwen3 omni": {"model_type": "qwen3_omni_moe_text", "head_dim": 128, "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e6, "mrope_section": [24, 20, 20]}},
    "qwen3 vl of a narrow head": {"model_type": "qwen3_vl_text", "hidden_size": 256, "num_attention_heads": 8,
                                  "num_key_value_heads": 4, "head_dim": 34},
    "qwen3 vl of a wide head": {"model_type": "qwen3_vl_moe_text", "head_dim": 256, "rope_parameters": {
        "rope_type": "default", "rope_theta": 5e6, "mrope_section": [1, 20, 30]}},
    "qwen3.5 with a wider part": {"model_type": "qwen3_5_text", "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.5}},
    "qwen4 exp": {"model_type": "qwen4_exp_text", "rope_parameters": {
        "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}},
    "sarvam moe": {"model_type": "sarvam_moe", "rope_theta": 12345.0, "partial_rotary_factor": 0.5},
}


class Absent(Exception):
    """Why a configuration cannot be compared."""


def inspect_file(path):
    run = subprocess.run([PROGRAM, "inspect", str(path), "--json"], capture_output=True, text=True)
    assert run.returncode == 0, f"{path.name}: {run.stderr.strip()}"
    return json.loads(run.stdout)


def frequencies_of(path, name, length):
    run = subprocess.run([PROGRAM, "frequencies", "--config", str(path), "--layer-type", name, "--mode",
                          "float32", "--json", "--seq-len", str(length)], capture_output=True, text=True)
    assert run.returncode == 0, f"{path.name} {name}: {run.stderr.strip()}"
    return json.loads(run.stdout)


def text_config_of(path):
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    keys = json.loads(path.read_text())
    model_type = keys.get("model_type")
    if model_type not in CONFIG_MAPPING:
        raise Absent(f"transformers has no class for model_type {model_type}")
    try:
        config = CONFIG_MAPPING[model_type].from_dict(keys)
    except Exception as error:  # its own checks refuse what is in the file
        raise Absent(f"refused by transformers: {type(error).__name__}: {str(error)[:80]}")
    if hasattr(config, "thinker_config"):
        config = config.thinker_config
    if isinstance(config, dict) or isinstance(getattr(config, "text_config", None), dict):
        raise Absent("transformers keeps its language model's keys unread")
    text = config.get_text_config(decoder=True)
    config.allow_global_per_layer_attribute_access = text.allow_global_per_layer_attribute_access = True
    if text is not config and all(keys.get(key) not in (None, getattr(text, key, None)) for key in ("layer_types",)) \
            or keys.get("num_attention_heads") not in (None, getattr(text, "num_attention_heads", None)):
        raise Absent("transformers' composite class does not read the keys at the top level")
    return text if isinstance(text, type(config)) or hasattr(text, "hidden_size") else config


def modeling_of(config):
    """The file of its model class; some types have a class of another type's file."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    name = type(config).__module__.replace(".configuration_", ".modeling_")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        classes = MODEL_MAPPING_NAMES.get(config.model_type)
        if not isinstance(classes, str):
            raise Absent(str(error))
        import transformers
        return sys.modules[getattr(transformers, classes).__module__]


def rotary_of(config, module):
    """The rotary module that transformers makes of this configuration, and whether it is made for that class of
    configurations; (None, False): it makes none."""
    if not hasattr(config, "rope_parameters"):
        return None, False
    found = []
    for name, kind in vars(module).items():
        if not (inspect.isclass(kind) and name.endswith(("RotaryEmbedding", "RotaryEmb"))) or kind.__module__ != module.__name__:
            continue
        parameters = inspect.signature(kind.__init__).parameters
        if "config" not in parameters:
            continue
        hint = str(parameters["config"].annotation)
        match = type(config).__name__ in hint
        found.append((match, "Vision" not in name and "Audio" not in name, name, kind))
    def distance(entry):
        """Its own configuration first, then the name that begins like the configuration's (Thinker, Talker)."""
        match, is_language, name, _ = entry
        return -match, -is_language, -len(os.path.commonprefix([name, type(config).__name__])), len(name)

    for match, _, name, kind in sorted(found, key=distance):
        try:
            return kind(config=config), match
        except Exception as error:
            last = error
    if found:
        raise Absent(f"its rotary module cannot be built: {type(last).__name__}: {str(last)[:80]}")
    return None, False


def float32_ulps(a, b):
    import numpy as np
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return np.abs(a.view(np.int32).astype(np.int64) - b.view(np.int32).astype(np.int64)).max() if a.size else 0


def tables_of(rotary, names):
    """{layer type or None: (inv_freq, factor)}."""
    tables = {}
    if "scaled" in inspect.signature(type(rotary).__init__).parameters: # Molmo 2 has one of each
        for name, one in (("scaled", rotary), ("unscaled", type(rotary)(config=rotary.config, scaled=False))):
            tables[name] = (one.inv_freq, one.attention_scaling)
    for name in names:
        if hasattr(rotary, f"{name}_inv_freq"):
            tables[name] = (getattr(rotary, f"{name}_inv_freq"), getattr(rotary, f"{name}_attention_scaling", 1.0))
    if not tables and hasattr(rotary, "inv_freq"):
        tables[None] = (rotary.inv_freq, getattr(rotary, "attention_scaling", 1.0))
    return tables


MAIN_NAMES = {"deepseek_v4": {"sliding_attention": "main", "compressed_sparse_attention": "compress",
                              "heavily_compressed_attention": "compress"}}


def compare_frequencies(path, config, rotary, ours):
    aliases = MAIN_NAMES.get(config.model_type, {})
    names = [entry["name"] for entry in ours]
    tables = tables_of(rotary, {aliases.get(name, name) for name in names} | {"main", "compress"})
    if not tables:
        raise Absent("its rotary module keeps no inverse frequencies")
    for entry in ours:
        name = aliases.get(entry["name"], entry["name"])
        inv_freq, factor = tables.get(name, tables.get(None, (None, None)))
        assert inv_freq is not None, f"transformers has {list(tables)}, not {entry['name']}"
        got = frequencies_of(path, entry["name"], 1)
        theirs = inv_freq.float().numpy()
        mine = got["inv_freq"]
        axes = entry["axes"] or {}
        if len(mine) == 2 * len(theirs) and axes.get("count") == 2: # a grid: every axis has the same ladder
            assert mine[:len(theirs)] == mine[len(theirs):], f"{entry['name']}: the two axes differ"
            mine = mine[:len(theirs)]
        if axes.get("order") == "ernie": # transformers keeps them in another order
            mine, theirs = sorted(mine), sorted(theirs)
        assert len(mine) == len(theirs), f"{entry['name']}: {len(mine)} pairs, transformers has {len(theirs)}"
        ulps = float32_ulps(mine, theirs)
        assert ulps <= 2, f"{entry['name']}: inverse frequencies differ by {ulps} ulp: {got['inv_freq'][:3]} {theirs[:3]}"
        assert abs(got["attention_factor"] - float(factor)) <= 2e-7 * abs(factor), \
            f"{entry['name']}: attention factor {got['attention_factor']}, transformers has {factor}"


def mixed_rows(rotary, config, positions, layer_type):
    """cos of one token whose axes have these positions, one number per pair, as transformers' rotary module and the
    sections that its attention takes make it; None where that cannot be told."""
    import torch
    ids = torch.tensor(positions).reshape(len(positions), 1, 1)
    named = {"layer_type": layer_type} if "layer_type" in inspect.signature(rotary.forward).parameters else {}
    try:
        cos = rotary(torch.zeros(1, 1, 8), ids, **named)[0]
    except Exception:
        return None
    if cos.dim() == 4 and cos.shape[0] == len(positions): # still one table for each axis
        sections = list(config.rope_parameters["mrope_section"]) * 2
        cos = torch.cat([part[i % len(positions)] for i, part in enumerate(cos.split(sections, dim=-1))], dim=-1)
    if cos.dim() != 3:
        return None
    cos = cos[0, 0]
    if torch.equal(cos[: len(cos) // 2], cos[len(cos) // 2:]):
        return cos[: len(cos) // 2].numpy()
    return cos[0::2].numpy() if torch.equal(cos[0::2], cos[1::2]) else None


def compare_axes(path, config, rotary, entry):
    """Which axis each pair follows, by one token with another position on every axis."""
    import numpy as np
    axes = entry["axes"]
    if not axes or not (axes["count"] == 3 or axes["order"] == "alternating"):
        return None
    positions = [3, 50, 700][:axes["count"]]
    theirs = mixed_rows(rotary, config, positions, entry["name"])
    if theirs is None:
        return "its axes are not mixed by the rotary module"
    run = subprocess.run([PROGRAM, "angles", "--config", str(path), "--layer-type", entry["name"], "--mode", "float32",
                          "--positions", ";".join(f"{p}:{p + 1}" for p in positions), "--json"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    ours = np.array(json.loads(run.stdout)["cos"][0])
    assert ours.shape == theirs.shape, f"{ours.shape} pairs, transformers has {theirs.shape}"
    worst = int(np.argmax(abs(ours - theirs)))
    assert abs(ours - theirs).max() < 1e-4, f"pair {worst} follows another axis: {ours[worst]}, transformers has {theirs[worst]}"
    return None


def turn_one(function, q, width):
    """The function on q and k of shape (1, 1, 1, width), whatever it wants cos and sin to be."""
    import torch
    for columns in (width, width // 2):
        angle = torch.full((1, 1, columns), 0.7)
        complex_angle = torch.polar(torch.ones(1, 1, columns), angle)
        for arguments in ((q, q.clone(), angle.cos(), angle.sin()), (q, angle.cos(), angle.sin()), (q, q.clone(), complex_angle),
                          (q, q.clone(), angle.cos()[0], angle.sin()[0])):
            try:
                out = function(*arguments)
            except Exception:
                continue
            out = out[0] if isinstance(out, tuple) else out
            if out.shape == q.shape and not out.is_complex():
                return out
    return None


def pairs_of(function, width):
    """Which channels the function turns together: each unit vector's image has the same two channels."""
    import torch
    supports = {}
    for channel in range(width):
        q = torch.zeros(1, 1, 1, width)
        q[..., channel] = 1.0
        out = turn_one(function, q, width)
        if out is None:
            return None
        supports.setdefault(tuple(torch.nonzero(out[0, 0, 0].abs() > 1e-3).flatten().tolist()), []).append(channel)
    return sorted(tuple(pair) for pair in supports.values())


def compare_lengths(path, config, ours):
    """Scalings that depend on the length, beyond the trained one."""
    import torch
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    block = getattr(config, "rope_parameters", None) or {}
    if len(ours) != 1 or block.get("rope_type") not in ("dynamic", "longrope"):
        return
    for length in (1, 4 * config.max_position_embeddings):
        theirs, factor = ROPE_INIT_FUNCTIONS[block["rope_type"]](config, torch.device("cpu"), seq_len=length)
        got = frequencies_of(path, ours[0]["name"], length)
        ulps = float32_ulps(got["inv_freq"], theirs.numpy())
        assert ulps <= 2, f"length {length}: inverse frequencies differ by {ulps} ulp"
        assert abs(got["attention_factor"] - float(factor)) <= 2e-7 * abs(factor), f"length {length}: attention factor"


def compare_pairing(config, module, entry):
    vision = ["apply_rotary_pos_emb_vision"] if "ision" in type(config).__name__ else []
    functions = [getattr(module, name, None) for name in
                 (*vision, "apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb", "apply_rotary_emb",
                  "apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb_partial")]
    if getattr(config, "rope_interleave", None) is False or "Audio" in type(config).__name__:
        functions = [f for f in functions if f is not getattr(module, "apply_rotary_pos_emb_interleave", None)]
    functions = [function for function in functions if function]
    if not functions:
        return "no function to turn with"
    pairs = next(filter(None, (pairs_of(function, 8) for function in functions)), None)
    if pairs is None:
        return f"{functions[0].__name__} takes other arguments"
    expected = {"half": [(j, j + 4) for j in range(4)], "interleaved": [(2 * j, 2 * j + 1) for j in range(4)]}
    assert pairs == expected[entry["pairing"]], f"pairing {entry['pairing']}, but transformers turns {pairs}"
    return None


class Watch:
    """Counts calls of a modeling file's apply_rotary functions by decoder layer."""

    def __init__(self, module, model):
        self.layer, self.rotated, self.undo = None, {}, []
        for name, function in list(vars(module).items()):
            if inspect.isfunction(function) and name.startswith("apply_") and "rot" in name:
                self.undo.append((module, name, function))
                setattr(module, name, self.wrap(function))
        lists = [m for m in model.modules() if type(m).__name__ == "ModuleList" and len(m) == model.config.num_hidden_layers]
        if not lists:
            raise Absent("no list of layers")
        for number, layer in enumerate(lists[0]):
            layer.register_forward_pre_hook(lambda *_, number=number: setattr(self, "layer", number))

    def wrap(self, function):
        def watched(q, *rest, **named):
            self.rotated[self.layer] = q.shape[-1]
            return function(q, *rest, **named)
        return watched

    def close(self):
        for module, name, function in self.undo:
            setattr(module, name, function)


def run_without_numbers(model, config):
    import torch
    mask = torch.zeros(1, 1, 4, 4)
    masks = {name: mask for name in set(getattr(config, "layer_types", None) or ["full_attention"])}
    for arguments in ({"attention_mask": mask}, {"attention_mask": masks}, {}):
        try:
            with torch.no_grad():
                return model(input_ids=torch.zeros(1, 4, dtype=torch.long), use_cache=False,
                             position_ids=torch.arange(4)[None], **arguments)
        except Exception as error:
            last = error
    raise last


def model_class_of(config, module):
    """AutoModel, or for parts of models that it does not know the one class of the file that takes them."""
    from transformers import AutoModel, PreTrainedModel
    from transformers.models.auto.modeling_auto import MODEL_MAPPING
    if type(config) in MODEL_MAPPING:
        return AutoModel.from_config
    kinds = [kind for name, kind in vars(module).items() if inspect.isclass(kind) and issubclass(kind, PreTrainedModel)
             and kind.__module__ == module.__name__ and kind.config_class is type(config)
             and not name.endswith("PreTrainedModel") and "For" not in name]
    if len(kinds) != 1:
        raise Absent(f"{len(kinds)} classes take its configuration")
    return kinds[0]._from_config


def layers_that_rotate(config, module):
    """{layer: width of what is turned}, by a forward pass without numbers."""
    import torch
    from transformers import masking_utils
    masking_utils.find_packed_sequence_indices = lambda *_, **__: None # it looks at numbers
    config._attn_implementation = "eager"
    config.dtype = torch.float32
    config._experts_implementation = "batched_mm"
    for key in ("quantization_config",):
        if hasattr(config, key):
            delattr(config, key)
    with torch.device("meta"):
        model = model_class_of(config, module)(config, dtype=torch.float32)
        model.eval()
        watch = Watch(module, model)
        try:
            run_without_numbers(model, config)
        finally:
            watch.close()
    return watch.rotated


def compare_layers(config, module, report):
    try:
        rotated = layers_that_rotate(config, module)
    except Exception as error:
        return f"no forward pass without numbers ({type(error).__name__}: {str(error)[:60]})"
    ours = {layer for entry in report["layer_types"] if entry["kind"] == "rope" for layer in entry["layers"]}
    if not rotated and ours:
        return "its rotation is not a function of the module"
    assert set(rotated) == ours, f"layers {sorted(ours)} rotate, in transformers {sorted(rotated)}"
    for entry in report["layer_types"]:
        for layer in entry["layers"] if entry["kind"] == "rope" else []:
            assert rotated[layer] in (entry["head_dim"], entry["rotary_dim"]), \
                f"layer {layer}: {rotated[layer]} channels are turned, not {entry['rotary_dim']} of {entry['head_dim']}"
    return None


def compare_sizes(config, report, ours):
    layers = getattr(config, "num_hidden_layers", None)
    assert layers in (None, report["layer_count"]), f"{report['layer_count']} layers, transformers has {layers}"
    heads = getattr(config, "num_attention_heads", None)
    kv_heads = getattr(config, "num_key_value_heads", None)
    entry = ours[0]
    assert not isinstance(heads, int) or entry["heads"] == heads, f"{entry['heads']} heads, transformers has {heads}"
    assert not isinstance(kv_heads, int) or entry["kv_heads"] == kv_heads, \
        f"{entry['kv_heads']} heads of k, transformers has {kv_heads}"


def compare(path):
    return compare_with(path, inspect_file(path), text_config_of(path))


def compare_with(path, report, config):
    if config.model_type in DIFFERS:
        raise Absent(DIFFERS[config.model_type])
    module = modeling_of(config)
    ours = [entry for entry in report["layer_types"] if entry["kind"] == "rope"]
    unknown = [entry["name"] for entry in report["layer_types"] if entry["kind"] == "unknown"]
    assert not unknown, f"kind unknown: {unknown}"
    rotary, is_its_own = rotary_of(config, module)
    left = []
    if rotary is None:
        assert not ours or config.model_type in NO_MODULE, "transformers has no rotary module"
        left.append("no rotary module")
    if not ours and rotary is not None:
        left.append(compare_layers(config, module, report))
        assert not (is_its_own and left[-1]), f"kind {report['layer_types'][0]['kind']}, but transformers has a rotary module"
    elif ours and rotary is not None:
        compare_sizes(config, report, ours)
        compare_frequencies(path, config, rotary, ours)
        compare_lengths(path, config, ours)
        left.append(compare_pairing(config, module, ours[0]))
        left.append(compare_axes(path, config, rotary, ours[0]))
        left.append(compare_layers(config, module, report))
    return [reason for reason in left if reason]


def test_of_file(path):
    """Why it was skipped, or None; what was not compared."""
    try:
        return None, compare(path)
    except Absent as reason:
        return str(reason), []


def without_places(layer_types):
    return [{**entry, "values": [{**value, "place": None} for value in entry["values"]]} for entry in layer_types]


def test_of_parts(path, folder):
    """The towers of a composite file: each is what a file of its own would be, and that is transformers'."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    keys, report = json.loads(path.read_text()), inspect_file(path)
    if not report["parts"]:
        return "it has no other parts", []
    left, compared = [], 0
    whole = CONFIG_MAPPING[keys["model_type"]].from_dict(keys) if keys["model_type"] in CONFIG_MAPPING else None
    for part in report["parts"]:
        if part["unread"]:
            left.append(f"{part['name']}: {part['unread']}")
            continue
        own, config = keys, whole
        for key in part["name"].split("."):
            own, config = own[key], getattr(config, key, None)
        alone = folder / f"{path.stem}.{part['name']}.json"
        alone.write_text(json.dumps({**own, "model_type": part["rule"]}))
        told = inspect_file(alone)
        assert without_places(told["layer_types"]) == without_places(part["layer_types"]), part["name"]
        if config is None or isinstance(config, dict):
            left.append(f"{part['name']}: transformers does not read it")
            continue
        if any(entry.get("invalid") for entry in part["layer_types"]):
            left.append(f"{part['name']}: no valid spec")
            continue
        compared += 1
        left += compare_with(alone, told, config)
    return (None, left) if compared else ("; ".join(left), [])


def test_of_keys(name, keys, folder):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(keys))
    return test_of_file(path)


def test_of_type(model_type, folder):
    """A file that says nothing but its type: everything is implied."""
    path = folder / f"{model_type}.json"
    path.write_text(json.dumps({"model_type": model_type}))
    report = inspect_file(path)
    if report["rule"] is None or all(entry["kind"] == "unknown" for entry in report["layer_types"]):
        return "a composite configuration says nothing without its parts", []
    invalid = [entry["invalid"] for entry in report["layer_types"] if entry.get("invalid")]
    if invalid:
        return f"no valid spec: {invalid[0]}", []
    return test_of_file(path)


def run_one(job):
    """Its TAP line without the number, and comments."""
    name, function, arguments = job
    try:
        skip, left = function(*arguments)
    except Exception:
        return "not ok", f"{name}\n# " + traceback.format_exc().replace("\n", "\n# ")
    comment = f"\n# {name}: not compared: {'; '.join(left)}" if left else ""
    return "ok", name + (f" # SKIP {skip}" if skip else "") + comment


def every_type_has_a_row():
    """Every model_type that transformers knows."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    missing = sorted(set(CONFIG_MAPPING_NAMES) - set(RULES))
    assert not missing, f"no row for {' '.join(missing)}"
    return None, []


def has_parts(path):
    keys = json.loads(path.read_text())
    return any(isinstance(value, dict) and ("vision" in key or "audio" in key)
               for key, value in [*keys.items(), *keys.get("thinker_config", {}).items()])


def jobs_of(names, folder):
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    yield "every model type of transformers has a row", every_type_has_a_row, ()
    for path in sorted(CONFIGS.glob("*.json")):
        if not names or any(name in path.name for name in names):
            yield path.stem, test_of_file, (path,)
            if has_parts(path):
                yield f"parts of {path.stem}", test_of_parts, (path, folder)
    for name, keys in FILES.items():
        if not names or name in names:
            yield f"keys of {name}", test_of_keys, (name, keys, folder)
    for model_type in sorted(CONFIG_MAPPING_NAMES):
        if RULES.get(model_type, "parts") != "parts" and (not names or model_type in names):
            yield f"defaults of {model_type}", test_of_type, (model_type, folder)


def prepare():
    """Returns why nothing can be compared, or None. Images are not looked at, and torchvision need not fit PyTorch."""
    if not CONFIGS.is_dir():
        return f"no configurations at {CONFIGS}"
    sys.modules["torchvision"] = None
    try:
        import torch
        import transformers # noqa: F401
    except ImportError as error:
        return str(error)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    return None


def main():
    global PROGRAM
    PROGRAM = sys.argv[1]
    reason = prepare()
    if reason:
        print(f"ok 1 - configurations against transformers # SKIP {reason}\n1..1")
        return 0
    failed = number = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = list(jobs_of(sys.argv[2:], Path(folder)))
        with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
            for number, (word, text) in enumerate(pool.imap(run_one, jobs, chunksize=8), 1):
                failed += word != "ok"
                print(f"{word} {number} - {text}", flush=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
