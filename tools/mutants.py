#!/usr/bin/env python3
"""Plants one fault at a time in a copy of the library and sees whether the unit tests notice.

    mutants.py [--jobs N] [--only WORD] [--every N] [--list]

A mutant is a name, a file, a text that stands in it exactly once, and what takes its place. The unit
tests must pass without a mutant and one of them must fail with it; a mutant that survives shows a
missing test. Whatever does not compile is a fault of the list. Prints TAP. SPDX-License-Identifier: MIT
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
from amalgamate import ROOT, library_lists  # noqa: E402 (beside this file)
from mutant_list import MUTANTS  # noqa: E402 (alike)

TESTS = ("base", "wide", "memory_map", "frequencies", "angles", "fast_rows", "rotate",
         "rotate_kernels", "rotate_laws", "rotate_refused", "rotate_rows", "rotate_output",
         "rotate_all", "head_kernels", "norm_rotate", "query_scale", "cache_append", "cache_shift",
         "cache_refused", "table", "sinusoidal", "alibi", "gguf", "gguf_refused", "json", "safetensors", "tensor_set",
         "model_path", "entry_list", "file_kind", "model", "model_gguf", "model_warnings", "conversion",
         "conversion_write", "file_rewrite", "diagnosis")
# The test that notices most mutants of some files runs first; the others follow, quick ones before slow.
FIRST = {"src/absolute": "sinusoidal", "src/angles": "angles", "src/bias": "alibi",
         "src/frequencies": "frequencies", "src/kernels/bias": "alibi", "src/kernels/sincos": "fast_rows",
         "src/kernels/rotate": "rotate_kernels", "src/rope/rotate.c": "rotate_all",
         "src/rope/rotate_plan": "rotate_refused", "src/rope/rotate_run": "rotate_rows",
         "src/rope/row_finder": "rotate_rows", "src/rope/head_pass": "norm_rotate",
         "src/rope/norm_rotate": "norm_rotate", "src/kernels/head": "head_kernels",
         "src/base/fp8": "cache_append", "src/cache/cache_append": "cache_append",
         "src/cache/cache_shift": "cache_shift", "src/cache/cache_slots": "cache_refused",
         "src/cache/cache_view": "cache_refused", "src/cache/cache_read": "cache_append",
         "src/angles/query_scale": "query_scale", "src/rope/rotation": "rotate", "src/rope/table": "table",
         "src/formats/gguf": "gguf", "src/formats/json": "json", "src/formats/safetensors": "safetensors",
         "src/formats/tensor": "gguf", "src/formats/entry": "entry_list", "src/formats/input": "gguf",
         "src/formats/gguf_split": "tensor_set", "src/formats/safetensors_index": "tensor_set",
         "src/formats/tensor_set": "tensor_set", "src/formats/llama2c": "tensor_set",
         "src/formats/model": "model_path", "src/formats/file_kind": "file_kind", "src/model": "model",
         "src/diagnosis": "diagnosis",
         "src/checkpoint": "conversion",
         "src/formats/safetensors_header": "conversion", "src/formats/gguf_header": "conversion",
         "src/formats/output_file": "file_rewrite", "src/formats/file_rewrite": "file_rewrite",
         "src/formats/rewrite": "file_rewrite", "src/formats/folder_copy": "conversion_write",
         "src/checkpoint/conversion_write": "conversion_write", "src/checkpoint/conversion_place": "conversion_write"}
# Kernels of other CPU levels than this machine's best run under POSENC_CPU; a mutant of a level that the machine
# lacks is skipped by name.
LEVELS = {"src/kernels/rotate_avx2": "avx2", "src/kernels/rotate_vector": "avx2",
          "src/kernels/rotate_avx512": "avx512bf16", "src/kernels/head_avx2": "avx2",
          "src/kernels/head_vector": "avx2", "src/kernels/head_avx512": "avx512bf16"}
PACKAGES = ("cmocka", "mpfr", "json-c")

class Failure(Exception):
    pass


def check_mutants(mutants):
    """Every old text must occur exactly once, else the list is out of step with the sources."""
    faults = []
    for name, file, old, new in mutants:
        path = ROOT / file
        found = path.read_text().count(old) if path.is_file() else 0
        if found != 1 or old == new:
            faults.append(f"mutant '{name}': its text occurs {found} times in {file}, not once")
    if faults:
        raise Failure("\n".join(faults))


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)


def pkg_config(*arguments):
    done = run(["pkg-config", *arguments])
    if done.returncode:
        raise Failure(done.stdout)
    return done.stdout.split()


def unit_tests():
    """The C files of each test in TESTS, by tests/units.cmake."""
    text = re.sub(r"#.*", "", (ROOT / "tests/units.cmake").read_text())
    programs = {}
    for call in re.findall(r"\bposenc_test\(([^)]*)\)", text):
        name, *words = call.split()
        files = [word for word in words if word.endswith(".c")]
        programs[name] = [f"tests/test_{name}.c"] + [f"tests/{file}" for file in files]
    missing = [name for name in TESTS if name not in programs]
    if missing:
        raise Failure(f"tests/units.cmake has no test {', '.join(missing)}")
    return {name: programs[name] for name in TESTS}


class Build:
    """A tree of src, include and tests, its objects, and the programs linked from them."""

    compiler = os.environ.get("CC", "cc").split()

    def __init__(self, folder):
        self.folder = folder
        self.objects = {}  # C file -> object
        self.libraries = pkg_config("--libs", *PACKAGES) + ["-lm", "-lpthread"]

    def compile(self, file):
        target = self.folder / "objects" / file.replace("/", "_")
        target.parent.mkdir(exist_ok=True)
        flags = ["-std=c11", "-O1", "-w", "-ffp-contract=off", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-MMD",
                 f'-DTEST_SOURCE_DIR="{ROOT}"', f'-DTEST_BINARY_DIR="{self.folder}"',
                 "-Isrc", "-Iinclude", "-Itests", *pkg_config("--cflags", *PACKAGES)]
        done = run([*self.compiler, *flags, "-c", file, "-o", f"{target}.o"], cwd=self.folder)
        if done.returncode:
            raise Failure(f"{file} does not compile:\n{done.stdout}")
        self.objects[file] = f"{target}.o"

    def users_of(self, file):
        """The C files that depend on `file`, by what the compiler wrote down."""
        return [source for source, target in self.objects.items()
                if file in Path(target).with_suffix(".d").read_text().split()]

    def link(self, name, files):
        program = self.folder / f"test_{name}"
        done = run([*self.compiler, *(self.objects[file] for file in files), "-o", program,
                    *self.libraries])
        if done.returncode:
            raise Failure(f"test_{name} does not link:\n{done.stdout}")
        return program


def of_prefix(table, file):
    """What the table has for the longest beginning of the file's name."""
    found = [prefix for prefix in table if file.startswith(prefix)]
    return table[max(found, key=len)] if found else None


def level_of(name, file):
    """The CPU level that a mutant needs: its name may end with one in brackets, else it is that of its file."""
    found = re.search(r" \((avx\w+)\)$", name)
    return found.group(1) if found else of_prefix(LEVELS, file)


def at_level(level):
    return dict(os.environ, POSENC_CPU=level) if level else None


def run_test(program, limit, level=None):
    """None if it passes, else why not."""
    try:
        done = run([program], cwd=program.parent, timeout=limit, env=at_level(level))
    except subprocess.TimeoutExpired:
        return f"{program.name} (time limit of {limit:.0f} s)"
    if done.returncode == 0:
        return None
    return f"{program.name}\n{done.stdout[-2000:]}" if done.returncode > 0 else f"{program.name} (crash)"


class Mutants:
    def __init__(self, folder, jobs):
        self.folder = folder
        self.jobs = jobs
        sources = library_lists()[0] + library_lists("posenc-model")[0]
        self.library = [file for file in dict.fromkeys(sources) if file.endswith(".c")]
        self.tests = unit_tests()
        self.seconds = {}  # that each test takes without a mutant
        self.lacking = set()  # levels of LEVELS that this CPU does not have

    @staticmethod
    def copy_tree(root, folder):
        folder.mkdir()
        for part in ("src", "include", "tests"):
            shutil.copytree(root / part, folder / part, ignore=shutil.ignore_patterns("data", "*.py"))

    def build_unmutated(self):
        self.copy_tree(ROOT, self.folder / "unmutated")
        done = run(["cmake", f"-DOUTPUT={self.folder / 'unmutated/src/models_table.h'}",
                    f"-DINPUT={ROOT / 'data/models.tsv'}", "-DNAME=penc_models_table",
                    "-P", ROOT / "cmake/embed_text.cmake"])
        if done.returncode:
            raise Failure(f"models_table.h cannot be made:\n{done.stdout}")
        self.base = Build(self.folder / "unmutated")
        files = dict.fromkeys(sum(self.tests.values(), self.library))
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.base.compile, files))
        for name, sources in self.tests.items():
            program = self.base.link(name, self.library + sources)
            start = time.monotonic()
            fault = run_test(program, 300)
            if fault:
                raise Failure(f"without a mutant fails {fault}")
            self.seconds[name] = time.monotonic() - start
        for level in set(LEVELS.values()):
            done = run([self.base.folder / "test_rotate_kernels", level], env=at_level(level))
            if done.returncode:
                raise Failure(f"without a mutant fails test_rotate_kernels {level}\n{done.stdout[-2000:]}")
            if "# SKIP" in done.stdout:
                self.lacking.add(level)

    def lacks(self, name, file):
        """The level that a mutant needs and this CPU lacks, or None."""
        level = level_of(name, file)
        return level if level in self.lacking else None

    def try_mutant(self, number, mutant):
        """The test that notices it, or None."""
        name, file, old, new = mutant
        folder = self.folder / f"mutant{number}"
        self.copy_tree(self.base.folder, folder)
        path = folder / file
        path.write_text(path.read_text().replace(old, new))
        build = Build(folder)
        build.objects = dict(self.base.objects)
        first, level = of_prefix(FIRST, file), level_of(name, file)
        for source in self.base.users_of(file):
            # Of the instances of a kernel template only that of the level: they take long to compile.
            if not level or not re.match("src/kernels/rotate_(neon|avx)", source) \
                    or source == f"src/kernels/rotate_{level}.c":
                build.compile(source)
        fault = None
        for test in sorted(self.tests, key=lambda test: (test != first, self.seconds[test])):
            program = build.link(test, self.library + self.tests[test])
            limit = 20 + 5 * self.seconds[test]
            fault = run_test(program, limit, level) if level else None
            fault = fault or run_test(program, limit)
            if fault:
                break
        shutil.rmtree(folder)
        return fault.splitlines()[0] if fault else None


def main():
    parser = argparse.ArgumentParser(description="Plants faults and sees whether the tests notice.")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--only", default="", help="only mutants with this word in name or file")
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="only one of N; the environment's POSENC_LONG brings all back")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    mutants = [m for m in MUTANTS if arguments.only in m[0] or arguments.only in m[1]]
    every = 1 if os.environ.get("POSENC_LONG") else arguments.every
    if every > 1:
        print(f"# one of {every} of {len(mutants)} mutants; with POSENC_LONG=1 all of them")
        mutants = mutants[::every]
    if arguments.list:
        print("\n".join(f"{file}: {name}" for name, file, _, _ in mutants))
        return 0

    failed = 0
    with tempfile.TemporaryDirectory(prefix="posenc-mutants.") as folder:
        try:
            check_mutants(MUTANTS)
            work = Mutants(Path(folder), arguments.jobs)
            work.build_unmutated()
        except Failure as failure:
            print("not ok 1 - the list fits the sources and the tests pass without a mutant")
            print("# " + str(failure).replace("\n", "\n# ") + "\n1..1")
            return 1
        print("ok 1 - the list fits the sources and the tests pass without a mutant", flush=True)

        def try_one(item):
            number, mutant = item
            if work.lacks(*mutant[:2]):
                return None, None
            try:
                return work.try_mutant(number, mutant), None
            except Failure as failure:
                return None, failure

        with ThreadPoolExecutor(arguments.jobs) as pool:
            results = pool.map(try_one, enumerate(mutants))
            for number, ((name, file, _, _), (killer, failure)) in enumerate(zip(mutants, results), 2):
                if work.lacks(name, file):
                    print(f"ok {number} - {name} # SKIP this CPU has no {work.lacks(name, file)}", flush=True)
                    continue
                if killer:
                    print(f"ok {number} - killed: {name} ({killer})", flush=True)
                    continue
                failed += 1
                how = "does not compile" if failure else "SURVIVED"
                print(f"not ok {number} - {how}: {name} ({file})", flush=True)
                if failure:
                    print("# " + str(failure).replace("\n", "\n# "))
    print(f"1..{len(mutants) + 1}")
    return 1 if failed or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
