"""posenc in the models of transformers: their angles and rotations, in one line, and back.

    import posenc.transformers
    report = posenc.transformers.use(model)            # or mode="exact"
    print(report)
    posenc.transformers.restore(model)

What changes: the module that makes cos and sin of the positions (rows), and the function that turns queries and
keys by them (apply). Parameters, buffers, state_dict and the model's classes stay; training, gradient checkpointing,
key-value caches, torch.compile and other devices than the CPU work. docs/transformers.md has the families and the
differences.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

try:
    import torch
    import transformers as _hf  # noqa: F401
except ImportError as error:
    raise ImportError(f"posenc.transformers needs PyTorch and transformers: pip install 'posenc[transformers]' "
                      f"({error})") from None

from . import _transformers_apply as _apply
from . import _transformers_methods as _methods
from . import _transformers_rows as _rows
from ._transformers_forms import is_rotary, plan_of

MODES = ("float32", "exact")


@dataclass
class Report:
    """What `use` did.

    rows: (name of a module, its class, layout of its rows, remarks) of each swapped module.
    apply: (modeling file, function, what it does) of each swapped function; (class, method, what it does) of methods.
    left_alone: (what, why) of what stays transformers' own.
    """
    mode: str
    rows: list[tuple[str, str, str, list[str]]] = field(default_factory=list)
    apply: list[tuple[str, str, str]] = field(default_factory=list)
    left_alone: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self):
        lines = [f"posenc, mode {self.mode}"]
        for name, kind, form, remarks in self.rows:
            lines.append(f"  rows    {name} ({kind}): {form}")
            lines += [f"          {remark}" for remark in remarks]
        lines += [f"  apply   {file}.{name}: {what}" for file, name, what in self.apply]
        lines += [f"  left    {what}: {why}" for what, why in self.left_alone]
        return "\n".join(lines)


def use(model: torch.nn.Module, mode: Literal["float32", "exact"] = "float32", *, strict: bool = False) -> Report:
    """Makes a model of transformers take its angles and rotations from posenc.

    model: any module that holds transformers' rotary embedding modules. On another device than the CPU the rows are made
        on the CPU and moved there once a forward pass, and PyTorch's operations turn by them, in float32.
    mode: 'float32': cos and sin of the same float32 angles that transformers forms, from the module's own inverse
        frequencies. 'exact': of the real-number angles of the configuration, correctly rounded.
    strict: refuse the model if anything of its rotary encoding would be left alone.

    Returns a Report. All or nothing: on an exception the model is as it was. Raises ValueError for a model that has no
    rotary embedding module that can be swapped (rotary buffers on the meta device have no numbers), or that is
    swapped already; TypeError for what is no module. Undone by `restore`. torch.compile takes posenc's rows and
    rotations as operators, without breaking the graph.
    """
    check_model(model, mode)
    report = Report(mode)
    plans = row_plans(model, mode, report)
    methods = methods_of(model, mode, report)
    if not plans and not methods:
        raise ValueError(why_nothing(model, report))
    functions = apply_plans(model, plans, report)
    if strict and report.left_alone:
        raise ValueError("strict is given, but something would be left alone: "
                         + "; ".join(f"{what}: {why}" for what, why in report.left_alone))
    commit(plans + methods, functions)
    return report


def check_model(model, mode):
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r} but must be 'float32' or 'exact'")
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is of type {type(model).__name__} but must be a torch.nn.Module")
    if any(_rows.is_swapped(module) for module in model.modules()):
        raise ValueError("model is swapped already: posenc.transformers.restore(model) first")


def row_plans(model, mode, report):
    """(name, module, Plan) of every rotary module that can be swapped; one module may have several names."""
    plans = []
    for name, module in model.named_modules():
        if not is_rotary(module):
            continue
        try:
            plan, remarks = plan_of(module, mode)
        except _rows.LeftAlone as reason:
            report.left_alone.append((f"{name} ({type(module).__name__})", str(reason)))
            continue
        plans.append((name, module, plan))
        remarks = remarks + device_remarks(model, module)
        layouts = sorted({part.form.table for part in plan.parts.values()})
        report.rows.append((name, type(module).__name__, ", ".join(layouts), remarks))
    return plans


def methods_of(model, mode, report):
    """(name, module, plan) of attention modules that turn by a method, and of the tables of their rows."""
    try:
        plans = _methods.method_plans(model, mode)
    except _rows.LeftAlone as reason:
        report.left_alone.append((f"{type(model).__name__}.{_methods.METHOD}", str(reason)))
        return []
    for name, module, plan in plans:
        if isinstance(plan, _methods.TablePlan):
            report.rows.append((name, type(module).__name__, "sin-cos", device_remarks(model, module)))
    for kind in sorted({type(module).__name__ for _, module, plan in plans if isinstance(plan, _methods.MethodPlan)}):
        report.apply.append((kind, _methods.METHOD, "interleaved"))
    return plans


def device_remarks(model, module):
    """What differs where tensors are not on the CPU: the devices of the module's buffers and of the model."""
    devices = {str(tensor.device) for tensor in (*module.buffers(), *model.parameters())}
    devices = sorted(device for device in devices if device not in ("cpu", "meta"))
    return [f"on {', '.join(devices)}: rows are moved there once a forward pass, PyTorch's operations turn by them"
            ] if devices else []


def table_shapes(plan):
    """The layouts and numbers of axes that tables of a module can have."""
    return {(part.form.table, axes) for part in plan.parts.values() for axes in (2, 3)}


def apply_plans(model, plans, report):
    """(file, name, original, signature, styles) of every function that can be swapped."""
    tables, mentioned = {}, {}
    for _, module, plan in plans:
        tables.setdefault(type(module).__module__, set()).update(table_shapes(plan))
    for kind in {type(module) for module in model.modules()}:
        for base in kind.__mro__:
            mentioned.setdefault(base.__module__, set()).update(_apply.names_in(base))
    chosen = []
    for file, shapes in tables.items():
        for name, original, signature, styles in _apply.styles_of(file, shapes, mentioned.get(file, ())):
            short = file.removeprefix("transformers.models.")
            if styles:
                chosen.append((file, name, original, signature, styles))
                report.apply.append((short, name, describe(styles)))
            else:
                report.left_alone.append((f"{short}.{name}", "it does none of what was tried with the rows at hand"))
    return chosen


def describe(styles):
    said = []
    for style in styles.values():
        words = style.pairing
        if style.output_pairing != style.pairing:
            words += f" in, {style.output_pairing} out"
        words += ", the other way" if style.backward else ""
        words += ", last channels" if style.trailing else ""
        if words not in said:
            said.append(words)
    return "; ".join(said)


def why_nothing(model, report):
    name = type(model).__name__
    if report.left_alone:
        return (f"model ({name}) has no rotary embedding module that can be swapped: "
                + "; ".join(f"{what}: {why}" for what, why in report.left_alone))
    return f"model ({name}) has no rotary embedding module: nothing in it holds inverse frequencies (inv_freq)"


def commit(plans, functions):
    done = []
    try:
        for _, module, plan in plans:
            _rows.swap_module(module, plan)
            done.append(module)
        for file, name, original, signature, styles in functions:
            _apply.install(file, name, original, signature, styles)
    except BaseException:
        for module in done:
            _rows.restore_module(module)
        drop_unused({type(module).__module__ for module in done})
        raise


def restore(model: torch.nn.Module) -> None:
    """Undoes `use`: the model's rotary modules, and the functions where no other model uses them, are transformers'
    own again. Raises ValueError for a model that is not swapped."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is of type {type(model).__name__} but must be a torch.nn.Module")
    modules = [module for module in model.modules() if _rows.is_swapped(module)]
    if not modules:
        raise ValueError("model is not swapped: posenc.transformers.use(model) was not called, or it was restored")
    for module in modules:
        _rows.restore_module(module)
    drop_unused({type(module).__module__ for module in modules})


def drop_unused(files):
    live = {type(module).__module__ for module in _rows.swapped}
    for file in files - live:
        _apply.uninstall(file)


__all__ = ["Report", "restore", "use"]
