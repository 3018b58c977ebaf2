"""What a rotary embedding module of transformers does, tried on the module itself. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import copy
import inspect
import json
import warnings
from dataclasses import replace

import numpy as np
import torch

from ._spec import RopeSpec
from ._transformers_rows import ExactSource, Form, LeftAlone, Part, Plan, is_swapped, numbers, sources, swap_module

TOLERANCE = 2.0 ** -21  # of cos and sin, at most 1 times the attention factor: 4 units in the last place below 1
SPEC_ULP = 2  # how far an exact spec's float32 frequencies may lie from the module's own


def is_rotary(module):
    """Whether a module holds inverse frequencies, for itself or for a layer type."""
    return keeps_table(module) or any(name.endswith("inv_freq") and isinstance(value, torch.Tensor)
                                      for name, value in (*module._buffers.items(), *module._parameters.items()))


def keeps_table(module):
    """gptj and codegen: sin and cos of the first positions in a buffer, made with base 10000."""
    table = module._buffers.get("embed_positions")
    return table is not None and table.dim() == 2 and "Rotary" in type(module).__name__


def layer_types(module):
    """[None], or the layer types that a module has frequencies for."""
    if "inv_freq" in module._buffers or keeps_table(module):
        return [None]
    names = [name[:-len("_inv_freq")] for name in module._buffers
             if name.endswith("_inv_freq") and not name.endswith("original_inv_freq")]
    return sorted(names)


def plan_of(module, mode):
    """The Plan of a module and remarks about it; LeftAlone says why there is none."""
    if is_swapped(module):
        raise LeftAlone("it is swapped already")
    if "forward" in module.__dict__:
        raise LeftAlone("its forward has been replaced on the instance (accelerate's hooks do that)")
    if getattr(getattr(module, "config", None), "alibi", False):
        raise LeftAlone("nothing is turned: its configuration says alibi")
    for name, value in module._parameters.items():
        if value is not None:
            raise LeftAlone(f"it has the parameter {name}, which changes the angles as it is trained")
    for name, value in module._buffers.items():
        if value is not None and value.device.type == "meta":
            raise LeftAlone(f"its buffer {name} is on the meta device: load the weights first")
    check_signature(module)
    parts, remarks = [], []
    for layer_type in layer_types(module):
        part = part_of(module, layer_type)
        if mode == "exact":
            part.exact, remark = exact_source(module, part)
            part.source = next(numbers)
            sources[part.source] = part.exact
            remarks += remark
        else:
            remarks += narrow_remark(module, part)
        parts.append(part)
    return Plan(parts), remarks


def check_signature(module):
    names = list(inspect.signature(type(module).forward).parameters)[1:]
    if names not in (["x", "position_ids"], ["x", "position_ids", "layer_type"]):
        raise LeftAlone(f"its forward takes ({', '.join(names)}), not (x, position_ids)")


def has_update(module):
    """Whether transformers' dynamic_rope_update decorates the forward."""
    forward = type(module).forward
    return getattr(forward, "__globals__", {}).get("__name__") == "transformers.modeling_rope_utils"


# --- Which form -------------------------------------------------------------------------------------

def probe_of(module):
    """A copy on the CPU whose state may change; the configuration is shared."""
    config = getattr(module, "config", None)
    made = copy.deepcopy(module, {} if config is None else {id(config): config})
    return made.to("cpu")


def trial_positions(module, layer_type):
    """Arrays of positions in the shapes that rotary modules take, some of them beyond the lengths where dynamic
    and longrope change."""
    beyond = [9, 70, 511]
    if keeps_table(module):
        beyond = [min(position, module.embed_positions.shape[0] - 1) for position in beyond]
    config = getattr(module, "config", None)
    lengths = [getattr(module, "original_max_seq_len", None)]
    parameters = getattr(config, "rope_parameters", None) or {}
    parameters = parameters.get(layer_type) or {} if layer_type is not None else parameters
    lengths.append(parameters.get("original_max_position_embeddings"))
    beyond += [length + 37 for length in lengths if isinstance(length, int)]
    row = torch.tensor([0, 1, 2, 5, *sorted(beyond)])
    few = torch.tensor([0, 1, 2, 5, *[7, 8, 9, 11][:len(beyond)]])
    yield torch.stack((row, row.flip(0) // 2))  # (batch, tokens)
    for count in (2, 3, 4):
        yield torch.stack([torch.stack((row, row // (axis + 2))) for axis in range(count)])  # (axes, batch, tokens)
    yield torch.stack((few, few.flip(0)), -1)  # (tokens, axes)
    yield torch.stack((few, few.flip(0), few * 2), -1)
    yield torch.stack((few, few.flip(0)), -1)[None]  # (batch, tokens, axes)


def call(module, x, positions, layer_type):
    more = {} if layer_type is None else {"layer_type": layer_type}
    made = module(x, positions.clone(), **more)
    return made if isinstance(made, tuple) else (made,)


def outcomes(module, layer_type, kind):
    """What the module gives for each array of positions that it takes, one copy for each."""
    x = torch.zeros(2, 3, 4, dtype=kind)
    for positions in trial_positions(module, layer_type):
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield positions, call(probe_of(module), x, positions, layer_type)
        except Exception:  # not a shape that this module takes
            continue


def table_values(module):
    """The inverse frequencies of a module that keeps rows; None for others."""
    if not keeps_table(module):
        return None
    return torch.from_numpy(RopeSpec(module.embed_positions.shape[1]).frequencies().inv_freq_float32)


def forms(module, outcome):
    """What may be, the likely first."""
    if keeps_table(module):
        return [Form("half", factor="none", kept="table")]
    updates = has_update(module)
    if outcome[0][1][0].is_complex():
        return [Form("complex", updates=updates)]
    if hasattr(module, "recomposition_frequencies"):
        return [Form(table, expand, True, "attention_scaling", updates)
                for table in ("full-half", "full-interleaved", "half") for expand in (0, 2, 3, 4)]
    plain = [Form(table, updates=updates) for table in ("full-half", "full-interleaved", "half")]
    return plain + [Form("full-half", factor="mscale")]


def part_of(module, layer_type):
    """The first form that gives what the module gives, in float32 and in the dtype of a bfloat16 x."""
    outcome = list(outcomes(module, layer_type, torch.float32))
    if not outcome:
        raise LeftAlone("its forward takes none of the shapes of positions that were tried")
    x16 = next(outcomes(module, layer_type, torch.bfloat16), None)
    follows = x16 is not None and x16[1][0].dtype is torch.bfloat16
    values = table_values(module)
    for form in forms(module, outcome):
        form = replace(form, follows=follows)
        part = Part(layer_type, form, values=values)
        if gives_same(module, part, outcome) and table_is(form, outcome):
            return part
    raise LeftAlone("its cos and sin differ from every form that was tried")


def gives_same(module, part, outcome):
    x = torch.zeros(2, 3, 4)
    for positions, wanted in outcome:
        if part.form.expand and positions.dim() == 3 and positions.shape[0] not in (1, part.form.expand):
            return False  # the module took what the form cannot
        probe = probe_of(module)
        swap_module(probe, Plan([part]))
        try:
            found = call(probe, x, positions, part.layer_type)
        except Exception:
            return False
        if len(found) != len(wanted) or any(not close(a, b) for a, b in zip(found, wanted)):
            return False
    return True


def close(a, b):
    if a.shape != b.shape:
        return False
    scale = max(1.0, float(b.abs().max())) if b.numel() else 1.0
    tolerance = max(TOLERANCE, torch.finfo(b.dtype).eps) if not b.is_complex() else TOLERANCE
    return bool((a.to(b.dtype) - b).abs().le(tolerance * scale).all())


def table_is(form, outcome):
    """Whether rows laid out by the module itself repeat each number as form.table says."""
    if not form.recompose:
        return True
    for _, (cos, sin) in outcome:
        half = cos.shape[-1] // 2
        for rows in (cos, sin):
            if form.table == "full-half" and not torch.equal(rows[..., :half], rows[..., half:]):
                return False
            if form.table == "full-interleaved" and not torch.equal(rows[..., 0::2], rows[..., 1::2]):
                return False
    return True


# --- The exact spec -----------------------------------------------------------------------------------

def parameters_of(module, layer_type):
    config = getattr(module, "config", None)
    parameters = getattr(config, "rope_parameters", None)
    if layer_type is not None and parameters:
        parameters = parameters.get(layer_type)
    if not isinstance(parameters, dict) or "rope_theta" not in parameters:
        raise LeftAlone("its configuration has no rope_parameters")
    return config, parameters


# Keys that decide widths, axes and layers: the module's own numbers say those.
OTHER_KEYS = ("partial_rotary_factor", "mrope_section", "mrope_interleaved", "xdrope_section", "short_mscale",
              "long_mscale", "llama_4_scaling_beta", "rope_theta", "type")


def spec_of(module, layer_type, pairs):
    """The RopeSpec of the configuration; LeftAlone where it has none."""
    config, parameters = parameters_of(module, layer_type)
    kind = parameters.get("rope_type", "default")
    scaling = {key: value for key, value in parameters.items() if key not in OTHER_KEYS and value is not None}
    if kind == "proportional" and "partial_rotary_factor" in parameters:
        scaling["partial_rotary_factor"] = parameters["partial_rotary_factor"]
    if getattr(module, "rope_type", None) in ("default", "axial") or kind == "axial":
        scaling = {"rope_type": "default"}
    maximum = getattr(config, "max_position_embeddings", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return RopeSpec(2 * pairs, base=float(parameters["rope_theta"]), scaling=json.dumps(scaling),
                            max_positions=maximum if isinstance(maximum, int) else None)
        except (TypeError, ValueError) as error:
            raise LeftAlone(f"its configuration is refused: {error}") from None


def ulp_apart(a, b):
    """The largest distance of two float32 arrays in units in the last place."""
    a, b = (np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.int64) for x in (a, b))
    return int(np.abs(a - b).max()) if a.size else 0


def exact_source(module, part):
    """An ExactSource and remarks: the configuration's spec where its float32 numbers are the module's
    own (in the buffer's dtype), else the module's own numbers taken as exact."""
    if part.values is not None:
        return ExactSource(RopeSpec(2 * part.values.numel()), ()), []
    name = part.prefix + "inv_freq"
    own = getattr(module, name).detach().cpu()
    kind = own.dtype
    remarks = []
    try:
        spec = spec_of(module, part.layer_type, own.numel())
        lengths = longrope_lengths(module, part.layer_type, spec)
        source = ExactSource(spec, lengths)
        made = torch.from_numpy(source.frequencies(1).inv_freq_float32)
        if kind is not torch.float32:
            made = made.to(kind)
            remarks.append(f"{name} was rounded to {str(kind)[6:]}; exact rows come from the configuration")
        if ulp_apart(made.float().numpy(), own.float().numpy()) > SPEC_ULP:
            raise LeftAlone("its inverse frequencies are not those of the configuration")
    except LeftAlone as reason:
        rope_type = getattr(module, "rope_type", None)
        rope_type = rope_type if part.layer_type is None else rope_type[part.layer_type]
        if part.form.updates and rope_type in ("dynamic", "longrope"):
            raise LeftAlone(f"mode 'exact' needs its spec, but {reason}") from None
        source = ExactSource(RopeSpec(2 * own.numel(), inv_freq=own.float().numpy()), ())
        remarks = [f"{reason}: {name} is taken as exact numbers"]
    return source, remarks


def longrope_lengths(module, layer_type, spec):
    if not spec.needs_seq_len:
        return ()
    _, parameters = parameters_of(module, layer_type)
    if parameters.get("rope_type") != "longrope":
        return ()
    return (int(parameters["original_max_position_embeddings"]),)


def narrow_remark(module, part):
    if part.values is not None:
        return []
    kind = getattr(module, part.prefix + "inv_freq").dtype
    if kind is torch.float32:
        return []
    return [f"{part.prefix}inv_freq was rounded to {str(kind)[6:]}; mode 'float32' keeps it, mode 'exact' does not"]
