#!/usr/bin/env python3
"""Detection of the pairing: the C library against its twin in NumPy, and against models whose pairing is known.

usage: test_pairing.py PATH_OF_LIBPOSENC_MODEL_SO ROOT                        SPDX-License-Identifier: MIT
"""
import os
import sys
from pathlib import Path

import numpy as np

import tap
from pairing_ctypes import SIDES, Pairings

ROOT = Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tools"))
import pair_statistic as twin  # noqa: E402
import weight_powers as weights  # noqa: E402

LIBRARY = Pairings(sys.argv[1])
SHARED = Path(os.environ.get("POSENC_SHARED") or ROOT.parent / "shared")
SEED = int(os.environ.get("POSENC_SEED", "20261129"))
LONG = bool(os.environ.get("POSENC_LONG"))
print(f"# seed {SEED}")
RANDOM = np.random.default_rng(SEED)
OTHER = {"half": "interleaved", "interleaved": "half"}


def permuted(layers, pairing, sides="qk"):
    return [(weights.to_other(q, pairing) if "q" in sides else q, weights.to_other(k, pairing) if "k" in sides else k)
            for q, k in layers]


def smooth(heads, count, length):
    x = np.arange(count)
    covariance = np.exp(-((x[:, None] - x) / length) ** 2 / 2) + 1e-6 * np.eye(count)
    return RANDOM.standard_normal((heads, count)) @ np.linalg.cholesky(covariance).T


def trained(d, heads, group, layers, tied=False):
    """Row powers as training makes them, half: a profile over frequencies that all heads share, heads that differ
    smoothly, and members of a pair that share the pair's power by chance, q and k against each other."""
    profile = smooth(2, d // 2, d / 8)
    made = []
    for _ in range(layers):
        head, split = smooth(heads, d // 2, 2), RANDOM.standard_normal((heads, d // 2)) / 2
        noise = RANDOM.standard_normal((2, heads, d)) / 5
        gains = RANDOM.standard_normal((2, d)) / 5 * tied
        x = np.concatenate([profile[0] + head + split, profile[0] + head - split], 1) + noise[0] + gains[0]
        y = np.concatenate([profile[1] + head - split, profile[1] + head + split], 1) + noise[1] + gains[1]
        share = RANDOM.dirichlet([4] * group, heads).reshape(heads, group, 1)
        made.append(((np.exp(x)[:, None] * share).reshape(-1, d), np.exp(y)))
    return made


def structureless(d, heads, group, layers, tied=False):
    """Any power per channel, alike in q and k, but the same law for all channels."""
    made = []
    for _ in range(layers):
        gains = np.exp(RANDOM.standard_t(3, (2, d)) * tied)
        channel = RANDOM.standard_t(2, (heads, d)).clip(-30, 30) / 2
        made.append(((np.exp(np.repeat(channel, group, 0)) * RANDOM.chisquare(32, (heads * group, d))) * gains[0],
                     np.exp(channel) * RANDOM.chisquare(32, (heads, d)) * gains[1]))
    return made


def compare(layers, tied, which=None):
    """The C judgement equals the twin's; returns its verdicts."""
    got = LIBRARY.judge(layers, tied, which)
    want = twin.judge(layers if which is None else [layers[which]], tied)
    assert got.exact_signs == want["signs"], (got.exact_signs, want["signs"])
    for i, side in enumerate(SIDES):
        evidence = getattr(got, side)
        pairs = [*zip(evidence.ratio, want["ratio"][:, i]), *zip(evidence.deviation, want["deviation"][:, i]),
                 (evidence.exact_half, want["exact"][0, i]), (evidence.exact_interleaved, want["exact"][1, i])]
        for a, b in pairs:
            assert abs(a - b) <= 1e-8 * max(1, abs(b)), (side, a, b)
        assert evidence.statistic == max(evidence.deviation, key=abs)
        verdict = want[side]
        assert got.verdicts()[i] == (None if verdict is None else twin.NAMES[verdict]), (side, got.verdicts(), want)
    return got.verdicts()


SHAPES = [(4, 1, 1, 1), (8, 2, 2, 3), (12, 3, 1, 2), (16, 1, 4, 5), (20, 4, 2, 2), (32, 4, 1, 3), (64, 2, 2, 4),
          (100, 1, 1, 2), (128, 2, 4, 2), (256, 1, 4, 2)]


def test_c_equals_the_twin_in_numpy():
    for make in (trained, structureless):
        for d, heads, group, layers in SHAPES:
            for tied in (False, True) if d <= 32 else (make is trained,):
                model = make(d, heads, group, layers, tied)
                for sides in ("", "qk", "q") if d <= 32 else ("q",):
                    compare(permuted(model, "interleaved", sides), tied)
                if d <= 32:
                    compare(model, tied, layers - 1)


def test_trained_like_weights_in_both_layouts():
    right = 0
    for _ in range(200 if LONG else 40):
        model = trained(int(RANDOM.choice([32, 64, 128])), 4, int(RANDOM.choice([1, 4])), 8)
        for pairing, layers in (("half", model), ("interleaved", permuted(model, "interleaved"))):
            verdicts = LIBRARY.judge(layers).verdicts()
            assert set(verdicts) <= {pairing, None}, (pairing, verdicts)
            right += verdicts[0] == pairing
    assert right >= 0.9 * 2 * (200 if LONG else 40), right


def test_one_sided_permutations_are_found():
    found = 0
    for _ in range(20):
        model = trained(64, 4, 2, 8)
        for sides, want in (("q", (None, "interleaved", "half")), ("k", (None, "half", "interleaved"))):
            judgement = LIBRARY.judge(permuted(model, "interleaved", sides))
            assert all(got in (None, right) for got, right in zip(judgement.verdicts(), want)), judgement.verdicts()
            assert judgement.q_k_differ == 1
            found += judgement.verdicts() == want
    assert found >= 32, found


def test_weights_without_structure_are_undetermined():
    for _ in range(2000 if LONG else 200):
        d, heads, group, layers = SHAPES[RANDOM.integers(len(SHAPES))]
        tied = bool(RANDOM.integers(2))
        model = structureless(d, heads, group, layers, tied)
        for which in (None, 0):
            assert LIBRARY.judge(model, tied, which).verdicts() == (None, None, None)


def test_heads_without_power_do_not_count():
    model = trained(64, 4, 2, 8)
    padded = [(np.concatenate([q, np.zeros((2, 64))]), np.concatenate([k, np.zeros((1, 64))])) for q, k in model]
    a, b = LIBRARY.judge(model), LIBRARY.judge(padded)
    assert bytes(a) == bytes(b) and a.heads == 32
    empty = LIBRARY.judge([(np.zeros((2, 64)), np.zeros((2, 64)))])
    assert empty.verdicts() == (None, None, None) and empty.heads == 0


def test_scaled_heads_give_the_same_answer():
    model = trained(64, 4, 2, 8)
    scaled = [(q * RANDOM.uniform(1e-6, 1e6), k * RANDOM.uniform(1e-6, 1e6, (4, 1))) for q, k in model]
    a, b = LIBRARY.judge(model), LIBRARY.judge(scaled)
    assert a.verdicts() == b.verdicts() and abs(a.both.statistic - b.both.statistic) < 1e-6


def embedded_models():
    """Those that were trained for this project: tools/make_row_powers.py. (name, position, layers, tied)."""
    models = {}
    with np.load(ROOT / "data/pairing/own_trained.npz") as arrays:
        for key, rows in arrays.items():
            name, position, tied, heads, _ = key.split()
            model = models.setdefault(name, (name, position, [], tied == "tied"))
            model[2].append((rows[:int(heads)], rows[int(heads):]))
    return list(models.values())


def shared_models():
    for path in sorted((SHARED / "data/models/qk").glob("*.safetensors")):
        metadata, tensors = weights.read_safetensors(path)
        layers, tied = weights.layers_of(tensors, int(metadata["head_dim"]), int(metadata["head_dim"]))
        yield path.stem, metadata["position"], layers, tied


def check_models(models):
    """No wrong answer, in both layouts, for single layers, with only q or k permuted. Returns how many trials with
    one layout there were, and those that were undetermined."""
    trials, undetermined = 0, []
    for name, position, layers, tied in models:
        own = position.removeprefix("rope-")
        rotary = own in OTHER and not name.endswith("_step0")
        there = OTHER.get(own, "interleaved")
        for sides in ("", "qk", "q", "k"):
            model = permuted(layers, there, sides)
            q, k = (there if side in sides else own for side in "qk")
            want = (q if q == k else None, q, k) if rotary else (None, None, None)
            verdicts = LIBRARY.judge(model, tied).verdicts() if sides else compare(model, tied)
            assert all(got in (None, right) for got, right in zip(verdicts, want)), (name, sides, verdicts)
            for which in range(len(layers)):
                got = LIBRARY.judge(model, tied, which).verdicts()
                assert got[0] in (None, want[0]), (name, sides, which, got)
            if rotary and q == k:
                trials += 1
                if verdicts[0] is None:
                    undetermined.append(f"{name} as {q}")
    print(f"# {trials} trials, undetermined: {undetermined}")
    return trials, undetermined


def test_models_trained_for_this_project():
    trials, undetermined = check_models(embedded_models())
    assert trials == 14 and len(undetermined) <= 1


def test_models_of_others():
    if not SHARED.is_dir():
        return "no ../shared"
    trials, undetermined = check_models(shared_models())
    assert trials == 10 and not undetermined
    return None


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
