"""What a model's own files say of its positional encoding. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import json
import os

from . import _core
from ._words import AXIS_EXPONENTS, AXIS_ORDERS, path_bytes

ARGUMENTS = {"rope_theta": "base"}  # of RopeSpec, where a file's word is another


def open_model(source):
    """The model at a path, or of a dict as config.json has it, or of what gives one with to_dict()."""
    if hasattr(source, "to_dict"):
        source = source.to_dict()
    if isinstance(source, dict):
        try:
            text = json.dumps(source, default=lambda value: value.tolist())
        except (AttributeError, TypeError, ValueError) as error:
            raise TypeError(f"config must hold what JSON can hold: {error}") from None
        return _core.parse_model(text)
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(f"config is of type {type(source).__name__} but must be a path, a dict as config.json has "
                        "it, or a configuration of transformers")
    return _core.open_model(path_bytes("config", source))


def inspect(config):
    """What positional encoding a model has: the content of `posenc inspect --json`, as a dict.

    config: the path of a config.json, a params.json, a .gguf file or a model's folder; or a dict as config.json
        has it; or a configuration of transformers (what has to_dict()).

    Returns path (None for a dict), format ('config' or 'gguf'), model_type, rule (the row of rules; None: unknown),
    remark, layer_count, and
    layer_types: a dict for each type of layers with an encoding of its own: name, kind (rope, alibi, sinusoidal,
        learned, relative, other, none, unknown), the spec (head_dim, rotary_dim, rotary_start, pairing, base,
        scaling, axes; None where there is none, with the reason in `invalid`), what follows from it
        (attention_factor, wavelengths in positions, softmax_factor, ...), output_half (pairs are read interleaved
        and written as halves), norm_plus_one (weights of q and k norms are stored minus 1), conjugate (turns by
        the negative angle), heads, kv_heads (0: not known), layers (their numbers), and values: name, value,
        source ('file', 'implied' by the model type, 'defaulted'), place.
    parts: the other parts of a composite model (vision, audio ...): name (the key that holds it), unread (why it was not
        read; None: it was), and model_type, rule, remark, layer_count and layer_types of its own.
    warnings: code, message, fix and layer_type (None: all) of what looks wrong or is read differently by others.

    Raises OSError (FileNotFoundError and the like) or ValueError; nothing is printed. docs/models.md has the rules and warnings.
    """
    told = open_model(config).describe()
    named = isinstance(config, (str, bytes, os.PathLike))
    return {"path": os.fsdecode(config) if named else None, **told}


def choose_part(model, part):
    """The part called so, or the model itself."""
    if part is None:
        return model
    names = [one["name"] for one in model.describe()["parts"] if one["unread"] is None]
    if not isinstance(part, str):
        raise TypeError(f"part is {part!r} but must be a word, one of {names}")
    found, unread = model.part(part)
    if unread is not None:
        raise ValueError(f"the part {part!r} of config is not read: {unread}")
    if found is None:
        raise ValueError(f"part is {part!r} but " + (f"must be one of {names}" if names else "config has no other parts"))
    return found


def listed(types):
    return ", ".join(f"{name} ({kind})" for name, kind, _ in types)


def choose_layer_type(model, layer_type):
    """The number of the layer type called so, or of the only one that rotates."""
    types = model.layer_types()
    if layer_type is None:
        rotary = [i for i, (_, kind, _) in enumerate(types) if kind in ("rope", "unknown")]
        if not rotary:
            raise ValueError(f"config has no rotary encoding: {listed(types)}")
        if len(rotary) > 1:
            raise ValueError("layer_type is missing: config has several layer types; choose one of "
                             f"{listed(types[i] for i in rotary)}")
        return rotary[0]
    if not isinstance(layer_type, str):
        raise TypeError(f"layer_type is {layer_type!r} but must be a word, one of {listed(types)}")
    found = model.named(layer_type)
    if found is None:
        raise ValueError(f"layer_type is {layer_type!r} but must be one of {listed(types)}")
    return found


def spec_arguments(model, layer_type, pairing):
    """The arguments of RopeSpec; and what was defaulted or looks wrong, as (kind, argument, value, message)."""
    index = choose_layer_type(model, layer_type)
    name, kind, invalid = model.layer_types()[index]
    if kind not in ("rope", "unknown"):
        raise ValueError(f"layer_type {name!r} does not rotate: its encoding is {kind}")
    if invalid:
        raise ValueError(f"config has no valid spec for the layers {name!r}: {invalid}")
    if kind == "unknown" and pairing is None:
        raise ValueError("pairing is missing: the model type is not known, so say which channels pair: 'half' or "
                         "'interleaved'")
    if kind == "rope" and pairing is not None:
        raise ValueError(f"pairing is {pairing!r} but the model type gives it; dataclasses.replace changes a spec")
    told = model.spec(index)
    scaling = told["scaling"] or {"rope_type": "default"}
    growth = scaling.pop("growth", None)
    arguments = {key: told[key] for key in ("head_dim", "rotary_dim", "rotary_start", "pairing", "shrinks", "inv_freq")}
    arguments.update(
        base=told["base"] or None, max_positions=told["max_positions"] or None, dynamic=growth,
        scaling=None if scaling["rope_type"] in ("default", "custom") else scaling)
    if pairing is not None:
        arguments["pairing"] = pairing
    if told["axes"]:
        count, sections, order, exponents = told["axes"]
        arguments["axes"] = (count, tuple(sections), AXIS_ORDERS[order], AXIS_EXPONENTS[exponents])
    return arguments, notes_of(told, name, model.warnings())


def plain(value):
    return f"{value:.17g}" if isinstance(value, float) else value


def notes_of(told, layer_type, warnings):
    notes = [("defaulted", ARGUMENTS.get(value["name"], value["name"]), value["value"],
              f"{value['name']} ({plain(value['value'])}) was not given and took its default: {value['place']}")
             for value in told["values"] if value["source"] == "defaulted"]
    if told["output_half"]:
        notes.append(("output_half", "output_pairing", "half",
                      "the model writes the turned pairs as halves: rotate(..., output_pairing='half')"))
    if told["conjugate"]:
        notes.append(("conjugate", "backward", True,
                      "the model turns by the negative angle: rotate(..., backward=True)"))
    notes += [(warning["code"], warning["layer_type"] or "config", None, f"{warning['message']} {warning['fix']}")
              for warning in warnings if warning["layer_type"] in (None, layer_type)]
    return notes
