#!/usr/bin/env python3
"""posenc convert of folders: what goes where, and several programs that share the files by --part, under mpirun too.

usage: test_convert_parts.py PROGRAM                                           SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap
from convert_files import (HEAD_DIM, HEADS, KV_HEADS, check_interleaved, read_tensors, to_interleaved, write_config,
                           write_file, write_shards)
from weight_files import write_gguf

PROGRAM = sys.argv[1]
RANDOM = np.random.default_rng(int(os.environ.get("POSENC_SEED", "20261129")))
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-parts-")
PLACE = Path(FOLDER.name)
INDEX = "model.safetensors.index.json"
SOURCE, WANTED = PLACE / "in", PLACE / "wanted"
SHARDS = 7
TENSORS = write_shards(SOURCE, RANDOM, SHARDS)


def command(source, target, *more):
    return [PROGRAM, "convert", str(source), str(target), "--to", "interleaved", "--force", *more]


def convert(source, target, *more):
    return subprocess.run(command(source, target, *more), capture_output=True, text=True, check=False)


def converts(source, target, *more):
    """What the program says of it."""
    done = convert(source, target, "--json", *more)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "stderr": done.stderr}


def refused(done, *words):
    assert done.returncode == 2 and not done.stdout, (done.returncode, done.stdout)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_weights(name):
    return name.endswith(".safetensors")


# ---- Folders ----

def test_a_folder_is_converted_with_all_that_stands_beside_the_weights():
    before = tree(SOURCE)
    said = converts(SOURCE, WANTED)
    assert tree(SOURCE) == before
    after = tree(WANTED)
    assert set(after) == set(before)
    assert sum(check_interleaved(WANTED / name, TENSORS) for name in after if is_weights(name)) == len(TENSORS)
    assert all(after[name] == data for name, data in before.items() if not is_weights(name))
    last = f"model-{SHARDS:05}-of-{SHARDS:05}.safetensors"  # in which nothing moves
    assert after[last] == before[last]
    others = sum(not is_weights(name) for name in before)
    assert (said["files_written"], said["files_missing"], said["others_written"], said["complete"]) == (
        SHARDS, 0, others, True), said


def test_there_and_back_is_the_same():
    done = subprocess.run([PROGRAM, "convert", str(WANTED), str(PLACE / "back"), "--to", "half"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tree(PLACE / "back") == tree(SOURCE)


def test_an_index_is_its_folder():
    converts(SOURCE / INDEX, PLACE / "by index")
    assert tree(PLACE / "by index") == tree(WANTED)


def test_links_are_followed_and_hidden_folders_and_other_weights_stay():
    source = PLACE / "snapshot"
    blobs = PLACE / "blobs"
    shutil.copytree(SOURCE, blobs)
    source.mkdir()
    for entry in blobs.iterdir():
        (source / entry.name).symlink_to(f"../blobs/{entry.name}")
    (source / ".git").mkdir()
    (source / ".git" / "objects").write_bytes(b"large")
    (source / ".gitattributes").write_text("*.safetensors filter=lfs")
    others = ("pytorch_model-00001-of-00002.bin", "consolidated.safetensors", "model.gguf", "optimizer.pt", "model.onnx")
    for name in others:
        (source / name).write_bytes(b"other weights")
    (source / "mmproj-model.gguf").write_bytes(b"no text")
    os.mkfifo(source / "pipe")
    said = converts(source, PLACE / "from links")
    got = tree(PLACE / "from links")
    assert got.pop(".gitattributes") and got.pop("mmproj-model.gguf")
    assert got == tree(WANTED)
    assert not any(path.is_symlink() for path in (PLACE / "from links").rglob("*"))
    for name in others:
        assert f"{name} is not copied" in said["stderr"], said["stderr"]
    shutil.rmtree(source)


def test_a_link_that_leads_nowhere_is_told():
    source = PLACE / "dangling"
    shutil.copytree(SOURCE, source)
    (source / "vocabulary.txt").symlink_to("missing")
    refused(convert(source, PLACE / "from dangling"), "vocabulary.txt")
    assert not (PLACE / "from dangling" / INDEX).exists()


def test_a_folder_of_one_file_is_converted_in_place_too():
    for named in (False, True):
        folder = PLACE / f"single {named}"
        folder.mkdir()
        tensors = {name: array for name, array in TENSORS.items() if ".0." in name}
        write_file(folder / "model.safetensors", tensors)
        write_config(folder, 1, 64)
        before = tree(folder)
        target = folder / "model.safetensors" if named else folder
        converts(target, target)
        assert check_interleaved(folder / "model.safetensors", tensors) == len(tensors)
        assert set(tree(folder)) == set(before)


def write_split_gguf(folder):
    """Two files with a layer in each."""
    folder.mkdir()
    keys = {"general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
            "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
            "llama.attention.key_length": HEAD_DIM, "llama.context_length": 64}
    tensors = [(f"blk.{i}.attn_{side}.weight", TENSORS[f"model.layers.{i}.self_attn.{side}_proj.weight"])
               for i in range(2) for side in "qkv"]
    for part in range(2):
        write_gguf(folder / f"model-0000{part + 1}-of-00002.gguf",
                   {**(keys if part == 0 else {}), "split.no": part, "split.count": 2, "split.tensors.count": 6},
                   {name: ("F32", array.shape, array.tobytes()) for name, array in tensors[3 * part:3 * part + 3]})
    return tensors


def test_the_parts_of_a_split_gguf_go_to_a_folder_alone():
    source, target = PLACE / "split", PLACE / "split out"
    tensors = write_split_gguf(source)
    (source / "README.md").write_text("of the folder, not of the model")
    assert not converts(source / "model-00001-of-00002.gguf", target, "--part", "1/2")["complete"]
    assert converts(source / "model-00001-of-00002.gguf", target, "--part", "0/2")["complete"]
    got = tree(target)
    assert sorted(got) == [f"model-0000{i}-of-00002.gguf" for i in (1, 2)]
    for i, (name, array) in enumerate(tensors):
        heads = HEADS if "_q." in name else KV_HEADS if "_k." in name else 0
        rows = (to_interleaved(array, heads) if heads else array).tobytes()
        assert rows in got[f"model-0000{i // 3 + 1}-of-00002.gguf"], name
    assert converts(source / "model-00002-of-00002.gguf", PLACE / "split by a later part")["complete"]
    assert tree(PLACE / "split by a later part") == got
    refused(convert(source / "model-00001-of-00002.gguf", source), "another folder")
    converts(source, PLACE / "split whole")  # the folder itself, with what stands in it
    assert tree(PLACE / "split whole") == {**got, "README.md": (source / "README.md").read_bytes()}


def test_targets_that_cannot_be_are_refused_and_nothing_is_written():
    before = tree(PLACE)
    (PLACE / "file").write_text("a file")
    (PLACE / "other").mkdir()
    (PLACE / "other" / "pytorch_model.bin").write_bytes(b"others'")
    (PLACE / "alias").symlink_to("in")
    refused(convert(SOURCE, SOURCE), "another folder", "half converted")
    refused(convert(SOURCE, PLACE / "alias"), "another folder")
    refused(convert(SOURCE, SOURCE / "out"), "not lie in")
    refused(convert(SOURCE, PLACE / "alias" / "out"), "not lie in")
    refused(convert(SOURCE, SOURCE / "assets" / "out"), "not lie in")
    refused(convert(SOURCE, PLACE / "file"), "Not a directory", "file")
    refused(convert(SOURCE, PLACE / "missing" / "out"), "No such file", "out")
    refused(convert(SOURCE, PLACE / "other"), "no other weights", "pytorch_model.bin")
    refused(convert(SOURCE / "model-00001-of-00007.safetensors", PLACE / "other"), "not a folder")
    for part in ("4/4", "-1/4", "0/0", "1", "1/", "/4", "a/4", "0/4x", "00000000001/4", ""):
        refused(convert(SOURCE, PLACE / "never", "--part", part), "--part")
    for name in ("file", "alias"):
        (PLACE / name).unlink()
    shutil.rmtree(PLACE / "other")
    assert tree(PLACE) == before


# ---- Parts ----

def test_every_part_writes_its_shards_and_the_last_one_the_rest():
    for parts, order in ((2, [0, 1]), (3, [2, 0, 1]), (10, list(range(10)))):
        target = PLACE / f"{parts} parts"
        shards = sorted(name for name in tree(SOURCE) if is_weights(name))
        there = set()
        for part in order:
            said = converts(SOURCE, target, "--part", f"{part}/{parts}")
            mine = shards[part::parts]
            there |= set(mine)
            assert said["files_written"] == len(mine) and said["files_missing"] == SHARDS - len(there)
            assert said["complete"] == (len(there) == SHARDS)
            assert set(tree(target)) == (set(tree(SOURCE)) if said["complete"] else there)
        assert tree(target) == tree(WANTED)


def stale_shards():
    """What may stand under the name of a converted shard but is none: name, bytes."""
    shard = "model-00002-of-00007.safetensors"
    old, right = (SOURCE / shard).read_bytes(), (WANTED / shard).read_bytes()
    yield "not converted", old
    yield "cut off", right[:-1]
    yield "longer", right + b"\0"
    yield "empty", b""
    tensors, _ = read_tensors(SOURCE / shard)
    other = PLACE / "another model"
    shutil.copytree(SOURCE, other)
    write_file(other / shard, {name: array + 1 for name, array in tensors.items()})
    converts(other, PLACE / "another out")
    yield "another model of the same shape", (PLACE / "another out" / shard).read_bytes()


def test_shards_of_another_conversion_are_not_taken_for_those_of_this_one():
    for number, (name, data) in enumerate(stale_shards()):
        target = PLACE / f"stale {number}"
        target.mkdir()
        (target / "model-00002-of-00007.safetensors").write_bytes(data)
        said = converts(SOURCE, target, "--part", "0/2")
        assert said["files_missing"] == 3 and not said["complete"] and not (target / INDEX).exists(), name
        said = converts(SOURCE, target, "--part", "1/2")
        assert said["complete"] and tree(target) == tree(WANTED), name


def test_a_part_that_is_run_again_finds_what_is_there():
    target = PLACE / "again"
    shutil.copytree(WANTED, target)
    (target / INDEX).unlink()
    (target / "model-00003-of-00007.safetensors").unlink()
    assert not converts(SOURCE, target, "--part", "1/3")["complete"]
    assert converts(SOURCE, target, "--part", "2/3")["complete"]
    assert tree(target) == tree(WANTED)
    assert converts(SOURCE, target, "--part", "8/9")["complete"]  # a part without shards only finishes


def test_parts_at_the_same_time_finish_once_or_more():
    for trial in range(30 if os.environ.get("POSENC_LONG") else 6):
        target = PLACE / f"together {trial}"
        parts = [subprocess.Popen(command(SOURCE, target, "--json", "--part", f"{i}/4"), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for i in range(4)]
        said = []
        for part in parts:
            out, error = part.communicate()
            assert part.returncode == 0, error
            said.append(json.loads(out))
        assert any(one["complete"] for one in said)
        assert tree(target) == tree(WANTED)


def test_mpirun_spreads_a_checkpoint_over_ranks():
    if not shutil.which("mpirun"):
        return "no mpirun"
    target = PLACE / "by mpirun"
    script = " ".join(f"'{word}'" for word in command(SOURCE, target, "--json")) + ' --part "$OMPI_COMM_WORLD_RANK/4"'
    environment = {**os.environ, "OMPI_MCA_btl": "self", "OMPI_MCA_btl_base_warn_component_unused": "0"}
    done = subprocess.run(["mpirun", "-n", "4", "--allow-run-as-root", "--oversubscribe", "sh", "-c", script],
                          capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert tree(target) == tree(WANTED)
    assert '"complete": true' in done.stdout or '"complete":true' in done.stdout
    return None


if __name__ == "__main__":
    status = tap.run(sys.modules[__name__])
    FOLDER.cleanup()
    sys.exit(status)
