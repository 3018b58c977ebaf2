#!/usr/bin/env python3
"""Makes posenc.c and posenc.h, the whole of libposenc in two files: amalgamate.py FOLDER

The list of sources and headers is that of posenc_library(posenc ...) in CMakeLists.txt. posenc.h holds
every public header once; posenc.c every internal header once and every template (.inc) each time that
it is included. The same tree gives the same bytes. SPDX-License-Identifier: MIT
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">].*$')
# A definition or declaration at the left margin, as clang-format leaves them.
STATIC = re.compile(r"^static\b[^=;({]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*[=;(]", re.M)
TEMPLATE_NAME = re.compile(r"^#define NAME\s+(\w+)", re.M)

NO_CONTRACTION = """\
/* Nothing here may be contracted to fused multiply-adds: equal bits on every machine rest on it.
 * These lines do what -ffp-contract=off does for the single files. GCC's SLP vectorizer makes them
 * all the same (fmaddsub, seen with GCC 12 at -O3 -mavx2 -mfma), so it is off too. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-tree-slp-vectorize")
#endif
"""

# Clang speaks of unused inline functions outside of headers, and here is no header.
UNUSED_INLINE = """\
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function"
#endif
"""


def fail(message):
    sys.exit(f"amalgamate: {message}")


# Headers that are included by themselves, for compilers that are told more.
APART = {"openmp.h"}


def library_lists(library="posenc"):
    """SOURCES and HEADERS of a library in CMakeLists.txt."""
    text = re.sub(r"#.*", "", (ROOT / "CMakeLists.txt").read_text())
    call = re.search(rf"\bposenc_library\(\s*{library}\s([^)]*)\)", text)
    if not call:
        fail(f"CMakeLists.txt has no posenc_library({library} ...)")
    lists, key = {"SOURCES": [], "HEADERS": []}, None
    for word in re.sub(r'"[^"]*"', "", call.group(1)).split():
        if word.isupper():
            key = word
        elif key in lists:
            lists[key].append(word)
    if not all(lists.values()):
        fail(f"posenc_library({library} ...) must name SOURCES and HEADERS")
    return lists["SOURCES"], lists["HEADERS"]


def version():
    text = (ROOT / "include/posenc/status.h").read_text()
    return ".".join(re.search(rf"POSENC_VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def head_comment(name, says):
    return (f"/* {name} - posenc {version()}, {says}\n"
            " * Made by tools/amalgamate.py: change the files that it was made from.\n"
            " * SPDX-License-Identifier: MIT */\n")


def find_include(target, beside):
    """The file of the project that an include names, or None for one of the system."""
    for folder in (ROOT / "include", ROOT / "src", beside):
        if (folder / target).is_file():
            return (folder / target).resolve()
    return None


class Expansion:
    """Text with its includes put in place, and the project's files that went in."""

    def __init__(self, skip=()):
        self.parts, self.done, self.files = [], set(skip), []

    def add(self, path):
        name = path.relative_to(ROOT)
        if path.suffix != ".inc":
            if path in self.done:
                return
            self.done.add(path)
        if path not in self.files:
            self.files.append(path)
        self.parts.append(f"\n/* ---- {name} ---- */\n")
        for line in path.read_text().splitlines(keepends=True):
            include = INCLUDE.match(line)
            found = include and find_include(include.group(1), path.parent)
            if found:
                self.add(found)
            elif include and '"' in line:
                fail(f"{name} includes {include.group(1)}, which is not there")
            else:
                self.parts.append(line)

    def text(self):
        return re.sub(r"\n{3,}", "\n\n", "".join(self.parts))


def check_names(files):
    """One translation unit: neither file names nor static names may occur twice."""
    by_file, by_static = {}, {}
    for path in files:
        if path.name in by_file:
            fail(f"two files are named {path.name}: {by_file[path.name]} and {path.relative_to(ROOT)}")
        by_file[path.name] = path.relative_to(ROOT)
        if path.suffix == ".inc":
            continue
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        text = re.sub(r'__attribute__\(\(.*?\)\)', " ", text)
        for name in set(STATIC.findall(text)) | set(TEMPLATE_NAME.findall(text)):
            if name in by_static:
                fail(f"'{name}' is static in both {by_static[name]} and {path.relative_to(ROOT)}")
            by_static[name] = path.relative_to(ROOT)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: amalgamate.py FOLDER")
    sources, headers = library_lists()

    public = Expansion()
    public.add(ROOT / "include/posenc/posenc.h")
    listed = {(ROOT / "include/posenc" / name).resolve() for name in headers if name not in APART}
    if set(public.files) != listed:
        odd = ", ".join(sorted(path.name for path in listed ^ set(public.files)))
        fail(f"posenc.h and the HEADERS in CMakeLists.txt differ in: {odd}")

    code = Expansion(skip=public.done)
    for source in sources:
        path = (ROOT / source).resolve()
        if not path.is_file():
            fail(f"CMakeLists.txt names {source}, which is not there")
        code.add(path)
    foreign = [path.name for path in code.files if (ROOT / "src") not in path.parents]
    if foreign:
        fail(f"libposenc includes headers that are not its own: {', '.join(foreign)}")
    check_names(public.files + code.files)

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "posenc.h").write_text(head_comment("posenc.h", "all public headers in one file.")
                                     + public.text())
    (folder / "posenc.c").write_text(head_comment("posenc.c", "the numeric library in one file: "
                                                  "cc -std=c11 -O2 -c posenc.c")
                                     + NO_CONTRACTION + "\n" + UNUSED_INLINE + '\n#include "posenc.h"\n' + code.text())


if __name__ == "__main__":
    main()
