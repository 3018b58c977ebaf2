#!/usr/bin/env python3
"""posenc convert when it is killed, runs out of disk, or its input changes: the source stays, the target is whole or not
there, and the next run does it.

usage: test_convert_safety.py PROGRAM                                          SPDX-License-Identifier: MIT
"""
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tap
from convert_files import HEAD_DIM, HEADS, KV_HEADS, check_interleaved, layer, write_config, write_file, write_shards

PROGRAM = sys.argv[1]
LONG = bool(os.environ.get("POSENC_LONG"))
RANDOM = np.random.default_rng(int(os.environ.get("POSENC_SEED", "20261129")))
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-safety-")
PLACE = Path(FOLDER.name)
QUICK = tempfile.TemporaryDirectory(prefix="posenc-safety-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
MEMORY = Path(QUICK.name)  # a disk without waiting, where there is one


def command(source, target, *more):
    return [PROGRAM, "convert", str(source), str(target), "--to", "interleaved", "--force", *more]


def convert(source, target, *more, **options):
    return subprocess.run(command(source, target, *more), capture_output=True, text=True, check=False, **options)


def converts(source, target, *more, **options):
    done = convert(source, target, *more, **options)
    assert done.returncode == 0, done.stderr
    return done


def refused(done, *words):
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def content(path):
    return path.read_bytes() if path.exists() else None


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def make_single(place, ffn):
    """A folder with one file of weights, and the right new file."""
    place.mkdir()
    tensors = {name: array for i in range(2) for name, array in layer(RANDOM, i, 512, ffn).items()}
    source, wanted = place / "model.safetensors", place / "wanted.safetensors"
    write_file(source, tensors)
    write_config(place, 2, 512)
    converts(source, wanted)
    assert check_interleaved(wanted, tensors) == len(tensors)
    return source, wanted


# ---- Kills ----

def seconds_of(run):
    times = []
    for _ in range(3):
        start = time.monotonic()
        run()
        times.append(time.monotonic() - start)
    return sorted(times)[1]


def kill_in(arguments, most):
    """Starts the program and kills it at a random moment; returns whether it was still at work."""
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(RANDOM.uniform(0, most))
        process.kill()
        process.wait()
        error = process.stderr.read()
        assert process.returncode in (0, -signal.SIGKILL), error
        return process.returncode != 0


def kills(place, count, ffn):
    """So many kills of conversions at work: to a new file, over an old one and in place, in turn."""
    source, wanted = make_single(place, ffn)
    target, old, before, after = place / "out.safetensors", b"what was there", content(source), content(wanted)
    keep = place / "keep.safetensors"
    shutil.copy(source, keep)
    most = seconds_of(lambda: converts(source, target))
    files = names(place)
    at_work = whole = trial = 0
    while at_work < count:
        trial += 1
        assert trial <= 5 * count, "the program is done too soon"
        in_place = trial % 3 == 2
        target.unlink(missing_ok=True)
        if trial % 3 == 1:
            target.write_bytes(old)
        at_work += kill_in(command(source, source if in_place else target), most)
        if in_place:
            there = content(source)
            assert there in (before, after)
            whole += there == after
            if there == before:
                converts(source, source)
                assert content(source) == after
            shutil.copy(keep, source)
        else:
            assert content(source) == before
            there = content(target)
            assert there == after or there == (old if trial % 3 == 1 else None)
            whole += there == after
            converts(source, target)
            assert content(target) == after
        assert set(names(place)) <= set(files), names(place)
    print(f"# {at_work} kills at work and {trial - at_work} too late, within {most * 1e3:.0f} ms; "
          f"{whole} times the new file was whole")


def test_kills_on_the_disk_lose_nothing():
    kills(PLACE / "kills", 1000 if LONG else 60, 3000)


def test_kills_in_memory_lose_nothing():
    kills(MEMORY / "kills", 2000 if LONG else 140, 2500)


def test_kills_of_folders_leave_whole_files_and_no_index_before_all_are_there():
    place = MEMORY / "folders"
    place.mkdir()
    source, target, wanted = place / "in", place / "out", place / "wanted"
    tensors = write_shards(source, RANDOM, 5, 512, 1500)
    converts(source, wanted)
    assert sum(check_interleaved(path, tensors) for path in wanted.glob("*.safetensors")) == len(tensors)
    sums = {path.relative_to(wanted): content(path) for path in wanted.rglob("*") if path.is_file()}
    before = {path: content(path) for path in source.rglob("*") if path.is_file()}
    most = 1.1 * seconds_of(lambda: converts(source, place / "time"))
    at_work = 0
    for _ in range(400 if LONG else 40):
        at_work += kill_in(command(source, target), most)
        there = {path.relative_to(target): content(path) for path in target.rglob("*")
                 if path.is_file() and ".posenc-" not in path.name} if target.exists() else {}
        assert there.items() <= sums.items()
        if Path("model.safetensors.index.json") in there:
            assert there == sums
        converts(source, target)
        there = {path.relative_to(target): content(path) for path in target.rglob("*") if path.is_file()}
        assert there == sums, set(there) ^ set(sums)
        shutil.rmtree(target)
    assert before == {path: content(path) for path in source.rglob("*") if path.is_file()}
    assert at_work >= 10


# ---- Full disks ----

def test_a_full_disk_is_told_and_leaves_nothing():
    disk = PLACE / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=False,
                                      capture_output=True).returncode:
        return "mounting a small disk needs root"
    try:
        source, wanted = make_single(PLACE / "large", 4000)
        before = content(source)
        (disk / "old").write_bytes(b"what was there")
        for name in ("new", "old"):
            refused(convert(source, disk / name), "No space left", str(disk / name))
            assert names(disk) == ["old"] and (disk / "old").read_bytes() == b"what was there"
            assert content(source) == before
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        converts(source, disk / "new")
        assert content(disk / "new") == content(wanted)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return None


def test_a_limit_of_file_sizes_is_told_and_leaves_nothing():
    source, wanted = make_single(PLACE / "limited", 1000)
    before, target = content(source), PLACE / "limited" / "out.safetensors"
    files = names(PLACE / "limited")
    for limit in (0, 100, 5000, 2000000):
        for out in (target, source):
            limits = (limit, resource.RLIM_INFINITY)
            done = convert(source, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
            refused(done, "File too large", out.name)
            assert content(source) == before and names(PLACE / "limited") == files
    converts(source, target)
    assert content(target) == content(wanted)


# ---- Inputs ----

def test_an_input_that_shrinks_meanwhile_is_told():
    place = MEMORY / "shrinks"
    source, wanted = make_single(place, 8000)
    keep, target, after = place / "keep.safetensors", place / "out.safetensors", content(wanted)
    shutil.copy(source, keep)
    most, told = seconds_of(lambda: converts(source, target)), 0
    for _ in range(200 if LONG else 20):
        target.unlink(missing_ok=True)
        with subprocess.Popen(command(source, target), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(RANDOM.uniform(0, most))
            os.truncate(source, int(RANDOM.uniform(0, source.stat().st_size)))
            error = process.communicate()[1]
        assert process.returncode in (0, 2), process.returncode
        if process.returncode:
            assert "model.safetensors" in error and not target.exists(), error
            told += 1
        else:
            assert content(target) == after
        shutil.copy(keep, source)
    assert told >= 3


def test_an_input_that_vanishes_meanwhile_is_converted_or_told():
    place = MEMORY / "vanishes"
    source, wanted = make_single(place, 8000)
    keep, target, after = place / "keep.safetensors", place / "out.safetensors", content(wanted)
    shutil.copy(source, keep)
    most = seconds_of(lambda: converts(source, target))
    for _ in range(100 if LONG else 10):
        target.unlink(missing_ok=True)
        with subprocess.Popen(command(source, target), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(RANDOM.uniform(0, most))
            source.unlink()
            error = process.communicate()[1]
        if process.returncode:
            assert process.returncode == 2 and "model.safetensors" in error and not target.exists(), error
        else:
            assert content(target) == after
        shutil.copy(keep, source)


def test_truncated_shards_are_refused_before_anything_is_written():
    source = PLACE / "truncated"
    write_shards(source, RANDOM, 4)
    for shard in sorted(source.glob("*.safetensors")):
        whole = shard.read_bytes()
        for left in (0, 7, 100, len(whole) - 1):
            shard.write_bytes(whole[:left])
            refused(convert(source, PLACE / "never"), shard.name)
            refused(convert(source, PLACE / "never", "--part", "0/2"), shard.name)
            assert not (PLACE / "never").exists()
        shard.write_bytes(whole)
    shard.unlink()
    refused(convert(source, PLACE / "never"), shard.name)
    assert not (PLACE / "never").exists()


def test_symbolic_links_are_followed_and_stay():
    place = PLACE / "links"
    source, wanted = make_single(place, 100)
    real = place / "blob"
    source.rename(real)
    source.symlink_to("blob")
    before = content(real)
    converts(source, place / "out.safetensors")
    assert content(place / "out.safetensors") == content(wanted) and content(real) == before
    os.link(real, place / "other name")
    converts(source, source)
    assert source.is_symlink() and os.readlink(source) == "blob"
    assert content(real) == content(wanted) and content(place / "other name") == before


def nobody():
    os.setgid(65534)
    os.setuid(65534)


def test_read_only_inputs_are_converted_and_read_only_folders_told():
    place = PLACE / "read only"
    source, wanted = make_single(place, 100)
    out = PLACE / "writable"
    out.mkdir()
    out.chmod(0o777)
    PLACE.chmod(0o755)
    source.chmod(0o444)
    place.chmod(0o555)
    before, files = content(source), names(place)
    options = {} if os.geteuid() else {"preexec_fn": nobody}
    if subprocess.run([PROGRAM, "--version"], capture_output=True, check=False, **options).returncode:
        return "nobody may not run the program"
    converts(source, out / "out.safetensors", **options)
    assert content(out / "out.safetensors") == content(wanted)
    for target in (source, place / "new.safetensors"):
        refused(convert(source, target, **options), "Permission denied", target.name)
    assert content(source) == before and names(place) == files
    place.chmod(0o755)
    return None


# ---- Size ----

def anonymous_memory(pid):
    """RssAnon of the program; 0 before and after it runs."""
    try:
        if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(PROGRAM):
            return 0
        return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) << 10
    except (OSError, TypeError):
        return 0


def test_a_sparse_input_larger_than_memory_takes_little_memory_and_stays_sparse():
    if b"asan" in Path(PROGRAM).read_bytes():
        return "the sanitizer needs memory of its own"
    place = PLACE / "sparse"
    place.mkdir()
    width, rows = 4096, {"q_proj": HEADS * HEAD_DIM, "k_proj": KV_HEADS * HEAD_DIM}
    source, target = place / "model.safetensors", place / "out.safetensors"
    large = 120 << 30
    header, at = {}, 0
    for name, shape in (("model.embed_tokens.weight", (large // 4 // width, width)),
                        *((f"model.layers.0.self_attn.{side}.weight", (count, width)) for side, count in rows.items()),
                        ("lm_head.weight", (large // 4 // width, width))):
        end = at + 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    q = RANDOM.standard_normal((rows["q_proj"], width), "f4")
    with source.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        try:
            file.truncate(8 + len(text) + at)
        except OSError:
            return "files of 240 GiB do not fit here"
        file.seek(8 + len(text) + header["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0])
        file.write(q.tobytes())
    write_config(place, 1, width)
    anonymous = 0
    with subprocess.Popen(command(source, target), stdout=subprocess.DEVNULL,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (192 << 20, 192 << 20))) as process:
        while process.poll() is None:
            anonymous = max(anonymous, anonymous_memory(process.pid))
    assert process.returncode == 0
    print(f"# RssAnon at most {anonymous / 2**20:.1f} MiB")
    assert 0 < anonymous < 64 << 20
    assert target.stat().st_blocks * 512 < 64 << 20 and target.stat().st_size >= source.stat().st_size
    with target.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        file.seek(start + header["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0])
        got = np.frombuffer(file.read(q.nbytes), "<f4").reshape(q.shape)
    assert (got.reshape(HEADS, HEAD_DIM // 2, 2, width).swapaxes(1, 2).reshape(q.shape) == q).all()
    return None


def used_bytes(disk):
    os.sync()
    state = os.statvfs(disk)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def test_a_file_system_that_shares_bytes_holds_only_moved_rows_twice():
    image, disk = PLACE / "image", PLACE / "xfs"
    disk.mkdir()
    image.touch()
    os.truncate(image, 400 << 20)
    if os.geteuid() or not shutil.which("mkfs.xfs"):
        return "needs root and mkfs.xfs"
    if (subprocess.run(["mkfs.xfs", "-q", str(image)], check=False, capture_output=True).returncode
            or subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=False, capture_output=True).returncode):
        return "XFS cannot be mounted here"
    try:
        source, wanted = make_single(disk / "model", 20000)
        before, size = used_bytes(disk), source.stat().st_size
        converts(source, disk / "out.safetensors")
        taken = used_bytes(disk) - before
        assert content(disk / "out.safetensors") == content(wanted)
        print(f"# {size} bytes, {taken} of them new")
        assert taken < size / 8
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return None


# ---- Progress ----

def test_progress_tells_rate_and_time_left_on_a_terminal():
    source, _ = make_single(MEMORY / "progress", 20000)
    for attempt in range(20):
        terminal, side = pty.openpty()
        with subprocess.Popen(command(source, MEMORY / "progress" / "out"), stdout=subprocess.DEVNULL, stderr=side) as process:
            os.close(side)
            time.sleep(0.01 * (1 + attempt))  # until it is at work, however slow its start is
            process.send_signal(signal.SIGSTOP)  # so that a second has passed at the next report
            time.sleep(1.1)
            process.send_signal(signal.SIGCONT)
            text = b""
            try:
                while chunk := os.read(terminal, 4096):
                    text += chunk
            except OSError:
                pass
        os.close(terminal)
        if found := re.search(rb"converting: +(\d+) %, (\d+) MB/s, \d+ s left", text):
            assert 0 < int(found[1]) <= 100 and text.endswith(b"\r\x1b[K")
            return
    raise AssertionError(text)


if __name__ == "__main__":
    status = tap.run(sys.modules[__name__])
    for folder in (FOLDER, QUICK):
        folder.cleanup()
    sys.exit(status)
