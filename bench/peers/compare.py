#!/usr/bin/env python3
"""posenc and what the Python index has for rotary embeddings, in one run: see README.md.

SPDX-License-Identifier: MIT
"""
import argparse
import datetime
import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # read by the libraries when they are loaded

import numpy as np  # noqa: E402

from cases import HEAD_DIM, HEADS, TOLERANCE, Case, Missing  # noqa: E402
from peer_posenc import Posenc  # noqa: E402

PEERS = ["package", "numpy", "torch", "onnxruntime", "openvino", "mlx"]
ROOT = Path(__file__).resolve().parents[2]
NOT_MEASURED = {"kernels-community rotary": "the package `kernels` fetches its code from a model hub at run "
                                            "time; no wheel of it was found on the Python index"}


def timed(contender, calls):
    start = time.perf_counter()
    for _ in range(calls):
        contender.call()
    return (time.perf_counter() - start) / calls


def calls_for(contender, seconds):
    """Warms up, and finds how many calls fill the time."""
    calls = 1
    timed(contender, 2)
    while timed(contender, calls) * calls < seconds:
        calls *= 2
    return calls


def error_of(contender, case):
    """The largest error against float64; Missing if it is too large to be called a rotation."""
    if contender.result is None:
        return 0.0
    contender.call()
    error = float(np.max(np.abs(contender.result() - case.wanted)))
    limit = contender.tolerance or TOLERANCE[case.dtype]
    if not error <= limit:
        raise Missing(f"wrong by {error:.3g} in {case.pairing}, {case.tokens} tokens; {limit:g} is allowed")
    return error


def right_ones(contenders, case, left_out):
    """Those that are right; a wrong posenc ends the program."""
    for contender in contenders:
        try:
            error_of(contender, case)
            yield contender
        except Missing as error:
            if contender.name.startswith("posenc"):
                sys.exit(f"{contender.name}, {case.dtype}: {error}")
            left_out[f"{contender.name}, {case.dtype}"] = str(error)


def measure(contenders, case, rounds, seconds, against):
    """Every side once a round, each round from another side on. One entry for each contender; ratios are to the one
    whose name is `against`."""
    calls = [calls_for(c, seconds) for c in contenders]
    times = [[] for _ in contenders]
    gc.disable()
    for first in range(rounds):
        for i in range(len(contenders)):
            at = (first + i) % len(contenders)
            times[at].append(timed(contenders[at], calls[at]))
    gc.enable()
    errors = [error_of(c, case) for c in contenders]
    posenc, memcpy = (times[[c.name for c in contenders].index(name)] for name in (against, "memcpy"))
    for contender, error, own in zip(contenders, errors, times):
        ratios = [t / p for t, p in zip(own, posenc)]
        copies = [m / t for t, m in zip(own, memcpy)]
        yield {"peer": contender.name, "note": contender.note, "dtype": case.dtype, "pairing": case.pairing,
               "tokens": case.tokens, "heads": HEADS, "head_dim": HEAD_DIM, "threads": 1,
               "microseconds": 1e6 * statistics.median(own),
               "gb_per_s": case.bytes_moved() / statistics.median(own) * 1e-9,
               "ratio_to_memcpy": statistics.median(copies),
               "times_posenc": statistics.median(ratios), "times_posenc_least": min(ratios),
               "times_posenc_most": max(ratios), "largest_error": error}


def cpu_name():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")),
                platform.processor())


def machine(posenc):
    versions = {"posenc": posenc.version, "Python": platform.python_version()}
    for package in ("numpy", "torch", "onnxruntime", "onnx", "openvino", "mlx"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return {"cpu": cpu_name(), "cores": os.cpu_count(), "posenc_cpu": posenc.cpu,
            "glibc_tunables": os.environ.get("GLIBC_TUNABLES", "none"),
            "system": platform.platform(), "load": os.getloadavg()[0], "versions": versions,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")}


def load_peers(names):
    peers, left_out = {}, dict(NOT_MEASURED)
    for name in names:
        try:
            peers[name] = importlib.import_module("peer_" + name)
        except Missing as error:
            left_out[name] = str(error)
    return peers, left_out


def markdown(report):
    about = report["machine"]
    lines = [f"{about['cpu']}, {about['cores']} cores, {about['system']}; {about['date']}.",
             ", ".join(f"{name} {version}" for name, version in about["versions"].items())
             + f"; posenc's CPU level {about['posenc_cpu']}; "
             f"GLIBC_TUNABLES {about['glibc_tunables']}.",
             f"One thread each, {HEADS} heads x {HEAD_DIM}, medians of {report['rounds']} rounds in turn; "
             f"[least .. most] over the rounds. posenc's time is that of \"{report['against']}\".", ""]
    for key, rows in itertools.groupby(report["results"], lambda r: (r["dtype"], r["pairing"], r["tokens"])):
        dtype, pairing, tokens = key
        lines += [f"### {dtype}, {pairing}, {tokens} token{'s' if tokens > 1 else ''}",
                  "| | us | GB/s | memcpy's time / its time | its time / posenc's | largest error | |",
                  "|---|---|---|---|---|---|---|"]
        for r in rows:
            lines.append(f"| {r['peer']} | {r['microseconds']:.1f} | {r['gb_per_s']:.1f} | "
                         f"{r['ratio_to_memcpy']:.3f} | {r['times_posenc']:.2f} "
                         f"[{r['times_posenc_least']:.2f} .. {r['times_posenc_most']:.2f}] | "
                         f"{r['largest_error']:.1e} | {r['note']} |")
        lines.append("")
    lines += ["Left out:"] + [f"- {name}: {why}" for name, why in report["left_out"].items()]
    return "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=str(ROOT / "build/test-gcc/libposenc.so"),
                        help="the shared library (%(default)s)")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--dtypes", nargs="+", choices=list(TOLERANCE), default=list(TOLERANCE))
    parser.add_argument("--pairings", nargs="+", choices=["half", "interleaved"],
                        default=["half", "interleaved"])
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 32, 4096])
    parser.add_argument("--against", default="posenc",
                        help="the side whose time is posenc's: posenc (the C library) or 'posenc package, PyTorch' "
                             "and the like")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.02,
                        help="of a side in a round, at least (%(default)s)")
    parser.add_argument("--json", help="write the results to this file too")
    return parser.parse_args()


def main():
    given = arguments()
    posenc = Posenc(given.library)
    peers, left_out = load_peers(given.peers)
    report = {"machine": machine(posenc), "rounds": given.rounds, "against": given.against,
              "results": [], "left_out": left_out}
    for dtype, pairing, tokens in itertools.product(given.dtypes, given.pairings, given.tokens):
        case = Case(dtype, pairing, tokens)
        contenders = posenc.contenders(case)
        for name, peer in peers.items():
            try:
                contenders += peer.contenders(case)
            except Missing as error:
                left_out[f"{name}, {dtype}"] = str(error)
        contenders = list(right_ones(contenders, case, left_out))
        print(f"{dtype}, {pairing}, {tokens} tokens: {len(contenders)} sides", file=sys.stderr)
        if given.against not in [c.name for c in contenders]:
            sys.exit(f"compare: --against is {given.against!r} but must be one of "
                     + ", ".join(repr(c.name) for c in contenders))
        report["results"] += measure(contenders, case, given.rounds, given.seconds, given.against)
    print(markdown(report), end="")
    if given.json:
        Path(given.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
