#!/usr/bin/env python3
"""Checks that includes go down the layers, and the rules of file names: check_layers.py [ROOT]

A file may include lower ranks, its own folder and public headers; users of the library (rank 6) only
public headers, their own folder and data. Faults are printed as file:line: message, then TAP lines.
SPDX-License-Identifier: MIT
"""
import re
import sys
from pathlib import Path

RANKS = {
    "src/base": 0,
    "src/cpu": 1,
    "src/kernels": 2, "src/frequencies": 2, "src/formats": 2,
    "src/angles": 3, "src/bias": 3, "src/model": 3,
    "src/absolute": 4, "src/positions": 4, "src/rope": 4, "src/checkpoint": 4,
    "src/cache": 5, "src/diagnosis": 5,
    "cli": 6, "python": 6, "bench": 6, "examples": 6,
}
USERS = 6
PUBLIC = "include/posenc"
SUFFIXES = {".c", ".h", ".inc", ".cc", ".cpp", ".hpp"}
MOST_LINES = 800
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Tree:
    def __init__(self, root):
        self.root = root
        folders = [folder for folder in ("src", "include", *RANKS) if (root / folder).is_dir()]
        self.files = sorted({path for folder in folders for path in (root / folder).rglob("*")
                             if path.suffix in SUFFIXES and path.is_file()})

    def name(self, path):
        return path.relative_to(self.root).as_posix()

    def folder(self, path):
        """The layer of a file: the folder in RANKS or include/posenc that holds it, else its own."""
        parent = self.name(path.parent)
        for layer in (*RANKS, PUBLIC):
            if parent == layer or parent.startswith(layer + "/"):
                return layer
        return parent

    def find(self, target, user):
        """The file of the tree that an include in `user` names, or None."""
        for base in (user.parent, self.root / "include", self.root / "src", self.root / "data"):
            path = (base / target).resolve()
            if path.is_file() and self.root in path.parents:
                return path
        return None

    def makes(self, folder, target):
        """Whether the nearest CMakeLists.txt speaks of the file: then the build makes it."""
        lists = self.root / folder / "CMakeLists.txt"
        lists = lists if lists.is_file() else self.root / "CMakeLists.txt"
        return lists.is_file() and re.search(rf"/{re.escape(target)}\b", lists.read_text()) is not None


def fault_of_include(tree, user, quote, target):
    """Why `user` may not include `target`; None if it may."""
    own = tree.folder(user)
    found = tree.find(target, user)
    if found is None:
        if quote == "<" or tree.makes(own, target):
            return None
        return f'"{target}" is not in the tree'
    other = tree.folder(found)
    if other == PUBLIC or other == own:
        return None
    if own == PUBLIC:
        return f"a public header may include only public headers, not {tree.name(found)}"
    if RANKS[own] == USERS:
        if tree.name(found).startswith("data/"):
            return None
        return f"{own} may include only public headers, itself and data, not {tree.name(found)}"
    if other not in RANKS:
        return f"{tree.name(found)} is in no layer"
    if RANKS[other] < RANKS[own]:
        return None
    how = "sideways" if RANKS[other] == RANKS[own] else "upwards"
    return f"{own} (rank {RANKS[own]}) includes {how}: {tree.name(found)} has rank {RANKS[other]}"


def faults_of_includes(tree):
    for path in tree.files:
        if tree.folder(path) not in RANKS and tree.folder(path) != PUBLIC:
            continue # said by faults_of_folders
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            fault = include and fault_of_include(tree, path, *include.groups())
            if fault:
                yield path, number, fault


def faults_of_folders(tree):
    for path in tree.files:
        if tree.folder(path) not in RANKS and tree.folder(path) != PUBLIC:
            yield path, 1, f"{tree.folder(path)} has no rank; give it one in tools/check_layers.py"


def faults_of_names(tree):
    seen = {}
    for path in tree.files:
        if path.stem.lower() in ("util", "utils"):
            yield path, 1, f"a file named {path.name} says nothing of what is in it"
        if tree.folder(path).split("/")[0] not in ("src", "include"):
            continue
        if path.name in seen:
            yield path, 1, f"{tree.name(seen[path.name])} has the same name"
        seen.setdefault(path.name, path)


def faults_of_licences(tree):
    for path in tree.files:
        head = re.match(r"\s*(/\*.*?\*/|(//[^\n]*\n)+)", path.read_text(), re.S)
        if not head or "SPDX-License-Identifier: MIT" not in head.group(0):
            yield path, 1, "the head comment has no SPDX-License-Identifier: MIT"


def faults_of_lengths(tree):
    for path in tree.files:
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES:
            yield path, lines, f"{lines} lines; {MOST_LINES} is the most"


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit("usage: check_layers.py [ROOT]")
    root = Path(sys.argv[1] if len(sys.argv) == 2 else Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    checks = [
        (f"every one of {len(tree.files)} files is in a layer", faults_of_folders),
        ("includes go down the layers", faults_of_includes),
        ("file names are unique and say something", faults_of_names),
        ("every file names its licence", faults_of_licences),
        (f"no file is longer than {MOST_LINES} lines", faults_of_lengths),
    ]
    failed = 0
    for number, (what, find_faults) in enumerate(checks, 1):
        faults = list(find_faults(tree))
        for path, line, message in faults:
            print(f"{tree.name(path)}:{line}: {message}")
        print(f"{'not ok' if faults else 'ok'} {number} - {what}")
        failed += bool(faults)
    if not tree.files:
        print(f"no source files in {root}")
    print(f"1..{len(checks)}")
    return 1 if failed or not tree.files else 0


if __name__ == "__main__":
    sys.exit(main())
