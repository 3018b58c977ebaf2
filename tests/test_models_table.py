#!/usr/bin/env python3
"""The form of data/models.tsv, and what it covers: test_models_table.py ROOT

The references that say what is to be covered are skipped by name where they are absent.
SPDX-License-Identifier: MIT
"""
import json
import os
import re
import sys
from pathlib import Path

import tap

ROOT = Path(sys.argv[1])
SHARED = Path(os.environ.get("POSENC_SHARED", ROOT.parent / "shared"))
LINES = (ROOT / "data/models.tsv").read_text().split("\n")
COLUMNS = LINES[0].split("\t")
ROWS = [dict(zip(COLUMNS, line.split("\t"))) for line in LINES[1:] if line]
CONFIG = {row["name"]: row for row in ROWS if row["format"] == "config"}
GGUF = {row["name"]: row for row in ROWS if row["format"] == "gguf"}

KINDS = "rope alibi sinusoidal learned relative other none".split()
WORDS = {
    "format": ["config", "gguf"],
    "kind": [*KINDS, "parts"],
    "pairing": ["half", "interleaved", "-"],
    "axes": ["chunked", "interleaved", "ernie", "grid", "strided", "alternating", "special", "-"],
    "stored": ["permuted", "-"],
    "norm": ["before", "after", "-"],
}
RULES = {"mla-softmax", "output-half", "norm-plus-one", "no-magnitude", "su-yarn", "fixed-base", "rope-ratio", "qwen-ntk", "internlm",
         "alpha", "conjugate", "log-mul-tenth", "phimoe", "gte-ntk", "values-turn"}
PATTERNS = {
    "when": r"([\w.]+=[\w*]+:(" + "|".join(KINDS) + r")(/\w+){0,2})( [\w.]+=[\w*]+:(" + "|".join(KINDS) + r")(/\w+){0,2})*",
    "rotary": r"whole|part|mla|trailing|clvp|key:\w+",
    "cycle": r"-?(?:[FSLCHKIV]+:)?[FSLCHKIV]+(?:\|[FSLCHKIV])?(?:@\w+)?",
    "bases": r"@lists|\w+(=[\w.]+(\+scaling)?)?( \w+(=[\w.]+(\+scaling)?)?)*",
    "nope": r"@\w+(,\w+)?|every:\d|\w+(\?\w+)?",
    "bias": r"yes|no|\w+",
}


def test_every_line_has_every_column():
    assert LINES[-1] == "", "the last line has no end"
    for number, line in enumerate(LINES[1:-1], 2):
        cells = line.split("\t")
        assert len(cells) == len(COLUMNS), f"line {number} has {len(cells)} columns, not {len(COLUMNS)}"
        assert all(cells) and all(cell == cell.strip() for cell in cells), f"line {number} has an empty or padded cell"


def test_names_are_unique_and_in_order():
    keys = [(row["format"], row["name"].lower(), row["name"]) for row in ROWS]
    assert keys == sorted(set(keys)), next(b for a, b in zip(keys, keys[1:]) if a >= b)


def test_words_are_known():
    for row in ROWS:
        for column, words in WORDS.items():
            assert row[column] in words, f"{row['name']}: {column} is {row[column]}"
        for column, pattern in PATTERNS.items():
            assert row[column] == "-" or re.fullmatch(pattern, row[column]), f"{row['name']}: {column} is {row[column]}"
        unknown = set(row["rules"].split()) - RULES - {"-"}
        assert not unknown, f"{row['name']}: rules {unknown}"


def test_what_rotates_has_a_pairing():
    for row in ROWS:
        rotates = row["kind"] == "rope" or ":rope" in row["when"]
        assert rotates == (row["pairing"] != "-") == (row["rotary"] != "-"), row["name"]


def test_rows_that_others_name_are_there():
    for row in CONFIG.values():
        assert row["gguf"] == "-" or row["gguf"] in GGUF, f"{row['name']}: no row for GGUF {row['gguf']}"
        assert row["part"] == "-" or row["part"] in CONFIG, f"{row['name']}: no row {row['part']}"
        assert (row["part"] == "-") or row["kind"] == "parts", row["name"]


def test_defaults_are_json_of_known_keys():
    blocks = {"rope_type", "rope_theta", "partial_rotary_factor", "factor", "mrope_section", "beta_fast", "beta_slow",
              "truncate", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor", "attention_factor",
              "mscale", "mscale_all_dim", "mrope_interleaved"}
    for row in ROWS:
        if row["defaults"] == "-":
            continue
        defaults = json.loads(row["defaults"])
        assert isinstance(defaults, dict) and defaults, row["name"]
        block = defaults.get("rope_parameters", {})
        entries = block.values() if any(isinstance(value, dict) for value in block.values()) else [block]
        for entry in entries:
            assert entry is None or set(entry) <= blocks, f"{row['name']}: {set(entry) - blocks}"


def plain(name):
    return re.sub("[^a-z0-9]", "", name.lower())


def test_every_directory_of_transformers_is_covered():
    path = SHARED / "reference/transformers_models.tsv"
    if not path.is_file():
        return f"{path} is absent"
    names = {plain(name) for name in CONFIG}
    for line in path.read_text().splitlines()[1:]:
        directory, kinds = line.split("\t")[:2]
        # data2vec, donut, inkling, lasr, openai and parakeet are no model_types themselves
        assert any(name.startswith(plain(directory)) for name in names), f"{directory} ({kinds})"


def test_every_architecture_of_llama_cpp_is_covered():
    path = SHARED / "reference/ggml.md"
    if not path.is_file():
        return f"{path} is absent"
    count = 0
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        match = re.match(r"(NONE|NORMAL|NEOX|MROPE|IMROPE) \(\d+\)$", cells[1]) if len(cells) > 2 else None
        if not match:
            continue
        pairing = {"NONE": None, "NORMAL": "interleaved"}.get(match.group(1), "half")
        for name in cells[2].split():
            row = GGUF.get(name)
            assert row, f"{name} has no row"
            count += 1
            # gptj is listed without a rotation but has one; starcoder is listed with one but has none
            if pairing and name not in ("starcoder",):
                assert row["pairing"] == pairing, f"{name}: {row['pairing']}"
    assert count == 143, count


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
