"""Parity of rules: the default configuration of every class that builds inverse frequencies, written as config.json and
read by `posenc frequencies`, gives its frequencies and attention factor. SPDX-License-Identifier: MIT

Where the program knows nothing, refuses or means something else stands in differences.json, under "rules".
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
from families import pytest
from rotary_classes import default_configuration, differences, module_of, rotary_class
from test_numbers import CASES, ULP, layer_types, theirs, ulps

KNOWN = {row["class"]: row["reason"] for row in differences()["rules"]}
PROGRAM = pathlib.Path(sys.executable).parent / "posenc"
SEQ_LEN = 16  # short of what dynamic and longrope change at


def read_by_program(path, layer_type):
    command = [PROGRAM, "frequencies", "--config", path, "--mode", "float32", "--seq-len", str(SEQ_LEN), "--json"]
    if layer_type is not None:
        command += ["--layer-type", layer_type]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rules_difference(cls, folder):
    """How the program's numbers for the default configuration differ from the class's, in words; None: not at all."""
    config = default_configuration(cls)
    if config is None:
        return "no configuration builds it"
    module = module_of(cls, "as configured")
    path = folder / "config.json"
    config.to_json_file(path, use_diff=False)
    for layer_type in layer_types(module):
        numbers, factor = theirs(module, layer_type, None)
        answer = read_by_program(path, layer_type)
        if answer.returncode:
            return "refused: " + answer.stderr.strip().replace(str(path), "config.json")
        said = json.loads(answer.stdout)
        own = np.array(said["inv_freq"]).astype(np.float32)
        if own.size == 2 * numbers.size:  # two axes: transformers keeps the frequencies of one
            numbers = np.tile(numbers, 2)
        if ulps(numbers, own) > ULP:
            return f"{own.size} frequencies, {numbers.size} of transformers, differ (layer type {layer_type})"
        if np.float32(factor) != np.float32(said["attention_factor"]):
            return f"attention factor is {factor}, not {said['attention_factor']} (layer type {layer_type})"
    return None


@pytest.mark.parametrize("directory,name", CASES, ids=[f"{d}.{n.split(':')[1]}" for d, n in CASES])
def test_rules(directory, name, tmp_path):
    cls = rotary_class(directory, name)
    found = rules_difference(cls, tmp_path)
    if cls.__name__ in KNOWN:
        assert found is not None, "it is in differences.json but does not differ"
    else:
        assert found is None
