#!/usr/bin/env python3
"""Makes the tables of docs/transformers.md: transformers_table.py [--families] [--speed] [--only NAME ...]

Families: the small models of python/tests/transformers, before and after posenc.transformers.use. Speed: rotation and a
whole forward pass, sides in turn, one run of about three minutes. Each table stands between two comments in the page and is replaced.
Needs an environment with posenc, PyTorch and transformers.

SPDX-License-Identifier: MIT
"""
import argparse
import copy
import pathlib
import platform
import re
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python" / "tests" / "transformers"), str(ROOT / "python" / "tests")]
PAGE = ROOT / "docs" / "transformers.md"
DECADES = (3, 4, 5, 6)

import torch  # noqa: E402
import transformers  # noqa: E402
from families import FAMILIES, small_model  # noqa: E402
from test_models import logits, run, tokens  # noqa: E402

import posenc.transformers  # noqa: E402
from posenc import _transformers_rows  # noqa: E402


def number(value):
    return "0" if value == 0 else f"{value:.1e}".replace("e-0", "e-").replace("e+00", "")


# --- Families -----------------------------------------------------------------------------------------------

def decade(power):
    generator = torch.Generator().manual_seed(power)
    return torch.randint(10 ** power, 10 ** (power + 1), (1, 256), generator=generator)


def rotary_modules(model):
    return [module for module in model.modules() if _transformers_rows.is_swapped(module)]


def rows_of(module, layer_type, positions):
    more = {} if layer_type is None else {"layer_type": layer_type}
    made = module(torch.zeros(1), positions, **more)
    return torch.view_as_real(made) if isinstance(made, torch.Tensor) else torch.stack(made)


def row_difference(own, ours, power):
    """Largest difference of cos or sin at positions 10^power to 10^(power + 1); None where transformers has no rows."""
    worst = 0.0
    for a, b in pairs(own, ours):
        for layer_type in b._posenc_plan.parts:
            try:
                wanted = rows_of(a, layer_type, decade(power))
            except IndexError:
                return None
            worst = max(worst, float((wanted - rows_of(b, layer_type, decade(power))).abs().max()))
    return worst


def pairs(own, ours):
    names = dict(own.named_modules())
    return [(names[name], module) for name, module in ours.named_modules() if _transformers_rows.is_swapped(module)]


def scalings(model):
    found = set()
    for module in rotary_modules(model):
        kind = getattr(module, "rope_type", "default") or "default"
        found |= set(kind.values()) if isinstance(kind, dict) else {kind}
    return ", ".join(sorted(found))


def family_row(name):
    own = small_model(name)
    ours, exact = copy.deepcopy(own), copy.deepcopy(own)
    report = posenc.transformers.use(ours)
    posenc.transformers.use(exact, "exact")
    layouts = sorted({layout for _, _, layout, _ in report.rows})
    turns = sorted({what for _, _, what in report.apply})
    with torch.no_grad():
        wanted = logits(run(own, name, tokens(2, 11)))
        logit = float((wanted - logits(run(ours, name, tokens(2, 11)))).abs().max())
        float32 = [row_difference(own, ours, power) for power in DECADES]
        real = [row_difference(own, exact, power) for power in DECADES]
    known = [value for value in float32 if value is not None]
    cells = [name, "; ".join(turns), "; ".join(layouts), scalings(ours), number(logit),
             number(max(known)) if known else "-"] + ["-" if value is None else number(value) for value in real]
    return "| " + " | ".join(cells) + " |"


def families(only):
    head = ["| family | pairing | rows | scaling | logits, float32 | rows, float32 | "
            + " | ".join(f"exact, 10^{power}" for power in DECADES) + " |",
            "|---|---|---|---|---|---|" + "---|" * len(DECADES)]
    rows = []
    for name in only or sorted(FAMILIES):
        rows.append(family_row(name))
        print(rows[-1], file=sys.stderr)
    return head + rows


# --- Speed -------------------------------------------------------------------------------------------------

SECONDS = 8  # for the two sides of one row
ROUNDS = 7, 400  # at least, at most


def in_turn(first, second):
    """Seconds of each round, for both sides, which take turns."""
    times = [], []
    for side in (first, second):
        for _ in range(2):
            side()
    end = time.perf_counter() + SECONDS
    while len(times[0]) < ROUNDS[0] or (len(times[0]) < ROUNDS[1] and time.perf_counter() < end):
        for kept, side in zip(times, (first, second)):
            start = time.perf_counter()
            side()
            kept.append(time.perf_counter() - start)
    return times


def speed_row(work, kind, times):
    """Medians, and median and quartiles of the ratio within a round."""
    before, after = (statistics.median(side) * 1e3 for side in times)
    low, middle, high = statistics.quantiles([a / b for a, b in zip(*times)], n=4)
    return f"| {work} | {str(kind)[6:]} | {before:.3g} | {after:.3g} | {middle:.2f} ({low:.2f} to {high:.2f}) |"


def llama(kind, **more):
    config = transformers.LlamaConfig(**{
        "vocab_size": 1000, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 2,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, **more})
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval().to(kind)


def rotation_row(kind, count):
    """Queries of 32 heads and keys of 8, head_dim 128: the apply function of one layer."""
    from transformers.models.llama import modeling_llama

    model = llama(kind, num_hidden_layers=1, head_dim=128)
    posenc.transformers.use(model)
    q = torch.randn(1, count, 32, 128).to(kind).transpose(1, 2)
    k = torch.randn(1, count, 8, 128).to(kind).transpose(1, 2)
    cos, sin = model.model.rotary_emb(q, torch.arange(count)[None])
    ours = modeling_llama.apply_rotary_pos_emb
    times = in_turn(lambda: ours.posenc_original(q, k, cos, sin), lambda: ours(q, k, cos, sin))
    posenc.transformers.restore(model)
    return speed_row(f"rotation of one layer, {count} tokens, 32 + 8 heads x 128", kind, times)


def forward_row(kind, count, compiled=False):
    own = llama(kind)
    ours = copy.deepcopy(own)
    posenc.transformers.use(ours)
    ids = torch.randint(0, 1000, (1, count))
    sides = own, ours
    if compiled:
        torch._dynamo.reset()
        sides = [torch.compile(model) for model in sides]

    def run_side(side):
        with torch.inference_mode():
            side(input_ids=ids, use_cache=False)

    return speed_row(f"forward pass of a llama of 2 layers, {count} tokens" + (", torch.compile" if compiled else ""), kind,
                     in_turn(*[lambda side=side: run_side(side) for side in sides]))


def speed():
    torch.set_num_threads(1)
    lines = ["| work | dtype | before, ms | after, ms | ratio (quartiles) |", "|---|---|---|---|---|"]
    for kind in (torch.float32, torch.bfloat16):
        for row in ([lambda count=count: rotation_row(kind, count) for count in (1, 512, 4096)]
                    + [lambda count=count: forward_row(kind, count) for count in (1, 512)]
                    + [lambda: forward_row(kind, 512, compiled=True)]):
            lines.append(row())
            print(lines[-1], file=sys.stderr)
    return lines


# --- The page ------------------------------------------------------------------------------------------------

def put(name, lines):
    text = PAGE.read_text(encoding="utf-8")
    mark = f"<!-- {name}: made by tools/transformers_table.py -->"
    pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"transformers_table: {PAGE} has no place for {name}")
    PAGE.write_text(pattern.sub(lambda _: "\n".join((mark, *lines, "<!-- end -->")), text), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Makes the tables of docs/transformers.md.")
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--only", nargs="*", help="print the rows of these families and write nothing")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    if options.only:
        print("\n".join(families(options.only)))
        return
    versions = (f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {platform.machine()}, "
                f"{posenc.cpu()}")
    if options.families:
        put("families", [f"{versions}.", "", *families(None)])
    if options.speed:
        put("speed", [f"{versions}, one thread.", "", *speed()])


if __name__ == "__main__":
    main()
