"""Every class of the installed transformers that builds inverse frequencies, and configurations to build it from.
SPDX-License-Identifier: MIT"""
import ast
import copy
import functools
import importlib
import inspect
import json
import pathlib
import typing

from families import transformers

MODELS = pathlib.Path(transformers.__file__).parent / "models"

# What transformers' rope_parameters of each kind need; lengths at which frequencies may differ (None: no length).
VARIANTS = {
    "as configured": (None, (None,)),
    "linear": ({"rope_type": "linear", "factor": 2.5}, (None,)),
    "dynamic": ({"rope_type": "dynamic", "factor": 4.0}, (16, 4096, 4097, 9000, 100_000)),
    "yarn": ({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 1024}, (None,)),
    "yarn-mscale": ({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707,
                     "mscale_all_dim": 1.0, "beta_fast": 24.0, "beta_slow": 2.0}, (None,)),
    "yarn-untruncated": ({"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
                          "truncate": False}, (None,)),
    "yarn-attention": ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048,
                        "attention_factor": 1.7}, (None,)),
    "llama3": ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 1024}, (None,)),
    "longrope": ({"rope_type": "longrope", "original_max_position_embeddings": 1024, "factor": 4.0},
                 (16, 1024, 1025, 4096)),
    "proportional": ({"rope_type": "proportional", "partial_rotary_factor": 0.25}, (None,)),
}
MAXIMUM = 4096  # max_position_embeddings of every variant


def classes_of(path):
    """(name of a class, name of its configuration's class or None) in a modeling file, by what is assigned."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for method in node.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            text = ast.unparse(method)
            if "inv_freq" in text and any(isinstance(n, (ast.Assign, ast.Expr)) and "inv_freq" in ast.unparse(n)
                                          and ("Buffer" in ast.unparse(n) or "setattr" in ast.unparse(n)
                                               or "register_buffer" in ast.unparse(n)) for n in ast.walk(method)):
                found.append(node.name)
    return found


@functools.lru_cache(maxsize=None)
def rotary_classes():
    """directory -> list of 'file:class'."""
    found = {}
    for path in sorted(MODELS.glob("*/modeling_*.py")):
        names = classes_of(path)
        if names:
            found.setdefault(path.parent.name, []).extend(f"{path.stem}:{name}" for name in names)
    return found


def rotary_class(directory, name):
    file, cls = name.split(":")
    return getattr(importlib.import_module(f"transformers.models.{directory}.{file}"), cls)


def annotated_configuration(cls):
    """The class that the annotation of __init__'s configuration names, or None."""
    name = list(inspect.signature(cls.__init__).parameters)[1]
    kind = typing.get_type_hints(cls.__init__).get(name)
    return next((part for part in typing.get_args(kind) if part is not type(None)), kind)


def and_parts(config):
    """A configuration, and those of its parts."""
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PreTrainedConfig):
            yield from and_parts(value)


def configurations(cls):
    """Default configurations that the class may be meant for, the likeliest first."""
    kinds = [annotated_configuration(cls)]
    package = importlib.import_module(cls.__module__.rsplit(".", 1)[0])
    kinds += [value for name, value in sorted((name, getattr(package, name, None)) for name in dir(package))
              if inspect.isclass(value) and issubclass(value, transformers.PreTrainedConfig)]
    for kind in kinds:
        if inspect.isclass(kind) and issubclass(kind, transformers.PreTrainedConfig):
            yield from and_parts(kind())


@functools.lru_cache(maxsize=None)
def default_configuration(cls):
    """The first configuration that the class can be built from; None if there is none."""
    for config in configurations(cls):
        try:
            cls(copy.deepcopy(config))
        except Exception:
            continue
        return config
    return None


def nested(parameters):
    """Whether rope_parameters are per layer type."""
    return isinstance(parameters, dict) and any(isinstance(value, dict) for value in parameters.values())


def with_base(old, variant, pairs):
    """rope_parameters of a variant with the model's own base and width; pairs: numbers in lists of longrope."""
    parameters, _ = VARIANTS[variant]
    kept = {key: old[key] for key in ("rope_theta", "partial_rotary_factor") if old.get(key) is not None}
    made = {"rope_theta": 10000.0, **kept, **parameters}
    if parameters["rope_type"] == "longrope":
        made["short_factor"] = [1.0 + i / 16 for i in range(pairs)]
        made["long_factor"] = [1.0 + i / 2 for i in range(pairs)]
    return made


def module_of(cls, variant, pairs=None):
    """A module of the class with rope_parameters of the variant; pairs: layer type -> pairs that rotate."""
    config = copy.deepcopy(default_configuration(cls))
    if variant != "as configured":
        old = config.rope_parameters
        config.max_position_embeddings = MAXIMUM
        if nested(old):
            config.rope_parameters = {layer: value and with_base(value, variant, pairs and pairs.get(layer, 0))
                                      for layer, value in old.items()}
        else:
            config.rope_parameters = with_base(old, variant, pairs and pairs[None])
    return cls(config)


def differences():
    """{"directories": {name: why no class of it keeps inverse frequencies}, "classes": [{class, variant, reason}]}"""
    return json.loads((pathlib.Path(__file__).parent / "differences.json").read_text(encoding="utf-8"))
