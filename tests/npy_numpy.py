#!/usr/bin/env python3
"""Files of arrays between posenc and NumPy, both ways, through test_npy's --make and --check.

usage: npy_numpy.py PATH_OF_TEST_NPY                                   SPDX-License-Identifier: MIT
"""
import io
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap

TEST_NPY = Path(sys.argv[1]).resolve()
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-numpy-")

# As in test_npy.c: the dtypes as NumPy has them, the bits of 1.5 in each, and the shapes.
DTYPES = {
    "f32": ("<f4", 0x3FC00000),
    "f64": ("<f8", 0x3FF8000000000000),
    "f16": ("<f2", 0x3E00),
    "bf16": ("V2", 0x3FC0),
}
SHAPES = [(), (5,), (0, 3), (4, 3), (2, 3, 5), (2, *[1] * 13, 12)]
ARRAYS = list(itertools.product(DTYPES, "cf", range(len(SHAPES))))


def bits(name, count):
    """The pattern of bits that the elements have, in the order of the file."""
    dtype, one_and_a_half = DTYPES[name]
    size = np.dtype(dtype).itemsize
    i = np.arange(count, dtype=np.uint64)
    pattern = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - 8 * size)
    pattern[:1] = one_and_a_half
    return pattern.astype(f"<u{size}")


def array(name, order, shape, byte_order="<"):
    pattern = bits(name, int(np.prod(shape)))
    dtype = np.dtype(DTYPES[name][0])
    if byte_order == ">":
        pattern, dtype = pattern.astype(pattern.dtype.newbyteorder(">")), dtype.newbyteorder(">")
    return pattern.view(dtype).reshape(shape, order=order.upper())


def write(path, values, version):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, values, version=version)


def run(option, folder):
    done = subprocess.run([TEST_NPY, option, folder], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{option}: exit {done.returncode}\n{done.stdout}{done.stderr}"


def new_folder(name):
    folder = Path(FOLDER.name) / name
    folder.mkdir()
    return folder


def made_folder():
    """The files that posenc wrote, made once."""
    folder = Path(FOLDER.name) / "made"
    if not folder.exists():
        run("--make", new_folder("made"))
        assert len(list(folder.iterdir())) == len(ARRAYS)
    return folder


def test_numpy_reads_what_posenc_wrote():
    folder = made_folder()
    for name, order, shape in ARRAYS:
        for mapped in (None, "r") if 0 not in SHAPES[shape] else (None,):
            got = np.load(folder / f"{name}_{order}_{shape}.npy", mmap_mode=mapped)
            wanted = array(name, order, SHAPES[shape])
            assert got.shape == wanted.shape and got.dtype == wanted.dtype, (name, order, shape)
            assert got.tobytes() == wanted.tobytes(), (name, order, shape)


def test_first_element_is_one_and_a_half():
    """A check of the patterns themselves: as numbers, bfloat16 as the upper half of a float32."""
    folder = made_folder()
    for name, order, shape in ARRAYS:
        first = np.load(folder / f"{name}_{order}_{shape}.npy").ravel()[:1]
        if name == "bf16":
            first = (first.view("<u2").astype("<u4") << 16).view("<f4")
        assert (first == 1.5).all() and first.size == (0 not in SHAPES[shape])


def test_posenc_writes_the_bytes_of_numpy():
    """But for what NumPy calls |V2, and the order of arrays for which it makes no difference."""
    folder = made_folder()
    for name, order, shape in ARRAYS:
        values, expected = array(name, order, SHAPES[shape]), io.BytesIO()
        np.save(expected, values)
        wanted = expected.getvalue().replace(b"'|V2'", b"'<V2'")
        if order == "c" or not values.flags.c_contiguous:
            assert (folder / f"{name}_{order}_{shape}.npy").read_bytes() == wanted, (name, order, shape)


def test_posenc_reads_what_numpy_wrote():
    folder = new_folder("numpy")
    for name, order, shape in ARRAYS:
        values = array(name, order, SHAPES[shape])
        np.save(folder / f"{name}_{order}_{shape}.npy", values)
        write(folder / f"{name}_{order}_{shape}_v2.npy", values, (2, 0))
        write(folder / f"{name}_{order}_{shape}_v3.npy", values, (3, 0))
        if name != "bf16":
            big = array(name, order, SHAPES[shape], ">")
            np.save(folder / f"{name}_{order}_{shape}_big.npy", big)
    run("--check", folder)


def test_posenc_notices_another_element():
    """The check above can fail: one bit of one file is turned."""
    folder = Path(FOLDER.name) / "numpy"
    path = folder / "f32_f_3_big.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    done = subprocess.run([TEST_NPY, "--check", folder], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
