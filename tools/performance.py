#!/usr/bin/env python3
"""Tables of docs/performance.md from `posenc bench --json`: performance.py BENCH.json [LABEL=BENCH.json ...]

Prints ratio (least to most) and microseconds of each case; further files stand beside the first as columns of
ratios, under their labels. SPDX-License-Identifier: MIT
"""
import json
import sys


def key(case):
    fields = "work dtype pairing tokens heads head_dim cache order in_place mode first_position".split()
    return tuple(case.get(field) for field in fields)


def name(case):
    if case["work"] == "angles":
        order = " out of order" if case["scattered"] else ""
        return f"{case['dtype']}, mode {case['mode']}, {case['tokens']} rows from {case['first_position']}{order}"
    if case["work"] == "bias":
        return f"{case['dtype']}, {case['heads']} heads"
    if case["work"] == "append":
        return f"{case['dtype']} to {case['cache']}, {case['pairing']}, {case['tokens']} x {case['heads']} x {case['head_dim']}"
    place = "in place" if case["in_place"] else "out of place"
    order = "" if case["order"] == "tokens" else ", (heads, tokens)"
    return f"{case['dtype']} {case['pairing']}, {case['tokens']} x {case['heads']} x {case['head_dim']}{order}, {place}"


def cell(case):
    return f"{case['ratio']:.2f} ({case['ratio_least']:.2f} to {case['ratio_most']:.2f})"


# What some works have beside the ratio to memcpy: the same work in several calls, and the rotation without the norm.
MORE = {"parts": "parts_ratio", "alone": "alone_ratio"}


def print_peers(cases):
    """Other libraries beside rows: their time by ours."""
    with_peers = [case for case in cases if "peers" in case]
    if with_peers:
        print("\n| beside rows | times as long as posenc | nanoseconds a pair |\n|---|---|---|")
    for case in with_peers:
        print(f"| {name(case)} | | {case['nanoseconds_per_pair']:.2f} |")
        for peer in case["peers"]:
            print(f"| {peer['name']} | {cell(peer)} | {peer['nanoseconds_per_pair']:.2f} |")


def main(first, *others):
    cases = json.load(open(first, encoding="utf-8"))
    labels, columns = [], []
    for other in others:
        label, path = other.split("=", 1)
        labels.append(label)
        columns.append({key(case): case for case in json.load(open(path, encoding="utf-8"))})
    for work in dict.fromkeys(case["work"] for case in cases):
        own = [c for c in cases if c["work"] == work]
        there = {label: field for label, field in MORE.items() if field in own[0]}
        print(f"\n| {work} | ratio | microseconds |" + "".join(f" {label} |" for label in [*there, *labels]))
        print("|---|---|---|" + "---|" * (len(there) + len(labels)))
        for case in own:
            more = [column.get(key(case)) for column in columns]
            print(f"| {name(case)} | {cell(case)} | {case['nanoseconds'] / 1e3:.2f} |"
                  + "".join(f" {case[field]:.2f} |" for field in there.values())
                  + "".join(f" {cell(m)} |" if m else " |" for m in more))
    print_peers(cases)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
