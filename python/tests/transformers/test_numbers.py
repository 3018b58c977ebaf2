"""Parity of numbers: inverse frequencies and attention factors of every class that builds them, with every scaling and
at lengths that switch dynamic and longrope, in mode float32. SPDX-License-Identifier: MIT

The specs come from the configurations' rope_parameters alone. What differs from transformers, or cannot be built, stands
in differences.json by name with its reason, and is tested to differ still.
"""
import itertools
import json
import warnings

import numpy as np
from families import pytest, torch
from rotary_classes import (MAXIMUM, MODELS, VARIANTS, default_configuration, differences, module_of, nested,
                            rotary_class, rotary_classes)
from transformers.modeling_rope_utils import dynamic_rope_update

import posenc

ULP = 2
# Keys that say how wide, on which axes or in which layers a model rotates: widths are taken from the module here.
WIDTHS = {"mrope_section", "mrope_interleaved", "xdrope_section", "llama_4_scaling_beta", "rope_theta"}
KNOWN = {(row["class"], row["variant"]): row["reason"] for row in differences()["classes"]}
CASES = [(directory, name) for directory, names in rotary_classes().items() for name in names]
only_updates = dynamic_rope_update(lambda self, x, position_ids, layer_type=None: None)


def ulps(a, b):
    a, b = (np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.int64) for x in (a, b))
    return int(np.abs(a - b).max()) if a.shape == b.shape else 1 << 30


def switches(module):
    return type(module).forward.__globals__["__name__"] == "transformers.modeling_rope_utils"


def layer_types(module):
    if hasattr(module, "inv_freq"):
        return [None]
    return sorted(name.removesuffix("_inv_freq") for name in module._buffers
                  if name.endswith("_inv_freq") and not name.endswith("original_inv_freq"))


def prefix_of(layer_type):
    return "" if layer_type is None else f"{layer_type}_"


def theirs(module, layer_type, length):
    """inv_freq and attention factor after a forward pass over `length` positions."""
    if length is not None and switches(module):
        more = {} if layer_type is None else {"layer_type": layer_type}
        only_updates(module, torch.zeros(1), torch.tensor([[0, length - 1]]), **more)
    prefix = prefix_of(layer_type)
    return getattr(module, prefix + "inv_freq").numpy(), getattr(module, prefix + "attention_scaling", 1.0)


def declared(config, layer_type):
    """rope_parameters of a layer type; for older configurations the base alone."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        base = next((getattr(config, key) for key in ("rope_theta", "rotary_embedding_base") if hasattr(config, key)),
                    10000.0)
        return {"rope_type": "default", "rope_theta": float(base)}
    return parameters[layer_type] if layer_type is not None else parameters


def ours(config, layer_type, pairs, length):
    parameters = dict(declared(config, layer_type))
    if parameters.get("rope_type") != "proportional":
        parameters.pop("partial_rotary_factor", None)
    scaling = {key: value for key, value in parameters.items() if key not in WIDTHS and value is not None}
    if scaling.get("rope_type") == "axial":
        scaling["rope_type"] = "default"
    maximum = getattr(config, "max_position_embeddings", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec = posenc.RopeSpec(2 * pairs, base=float(parameters["rope_theta"]), scaling=json.dumps(scaling),
                               max_positions=maximum if isinstance(maximum, int) else None)
    frequencies = spec.frequencies(length or 1)
    return frequencies.inv_freq_float32, frequencies._core.attention_factor(1)


def variants_of(cls):
    """All, for a class that reads rope_parameters; axial classes (vision towers) refuse every other rope_type."""
    parameters = getattr(default_configuration(cls), "rope_parameters", None)
    if not isinstance(parameters, dict) or parameters.get("rope_type") == "axial":
        return ["as configured"]
    return VARIANTS


def difference(cls, variant):
    """How a class differs with a variant, in words; None if it does not."""
    if default_configuration(cls) is None:
        return "no configuration builds it"
    try:  # the length of longrope's lists is the width that scalings other than proportional have
        plain = module_of(cls, "linear" if variant == "longrope" else "as configured")
    except Exception as error:
        return f"transformers: {type(error).__name__}: {error}"
    pairs = {kind: getattr(plain, prefix_of(kind) + "inv_freq").numel() for kind in layer_types(plain)}
    for layer_type, length in itertools.product(pairs, VARIANTS[variant][1]):
        try:
            module = module_of(cls, variant, pairs)
            numbers, factor = theirs(module, layer_type, length)
        except Exception as error:
            return f"transformers: {type(error).__name__}: {error}"
        try:
            own, own_factor = ours(module_config(module, cls), layer_type, numbers.size, length)
        except Exception as error:
            return f"posenc: {type(error).__name__}: {error}"
        where = f"(layer type {layer_type}, length {length})"
        if ulps(numbers, own) > ULP:
            return f"inverse frequencies differ by {ulps(numbers, own)} ulp {where}"
        if np.float32(factor) != np.float32(own_factor):
            return f"attention factor is {factor}, not {own_factor} {where}"
    return None


def module_config(module, cls):
    return getattr(module, "config", None) or default_configuration(cls)


@pytest.mark.parametrize("directory,name", CASES, ids=[f"{d}.{n.split(':')[1]}" for d, n in CASES])
def test_numbers(directory, name):
    cls = rotary_class(directory, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for variant in variants_of(cls):
            found = difference(cls, variant)
            if (cls.__name__, variant) not in KNOWN:
                assert found is None, f"{variant}: {found}"
            else:
                assert found is not None, f"{variant} is in differences.json but does not differ"


def test_known_differences_name_what_exists():
    names = {name.split(":")[1] for _, name in CASES}
    rows = differences()["classes"]
    assert not [row for row in rows if row["class"] not in names]
    assert not [row for row in rows if row["variant"] not in VARIANTS or not row["reason"]]


def test_every_directory_is_here():
    """A text search finds no modeling file with inverse frequencies beyond the classes tested and those named."""
    mentioned = {path.parent.name for path in MODELS.glob("*/modeling_*.py") if "inv_freq" in path.read_text("utf-8")}
    assert mentioned - set(rotary_classes()) == set(differences()["directories"])


def test_lengths_switch():
    assert MAXIMUM in VARIANTS["dynamic"][1] and MAXIMUM + 1 in VARIANTS["dynamic"][1]
    assert nested({"full_attention": {"rope_theta": 1.0}}) and not nested({"rope_theta": 1.0})
