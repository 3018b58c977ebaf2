#!/usr/bin/env python3
"""README's example is compiled: check_readme.py README.md examples/readme_example.c

Between the lines <!-- readme_example --> and <!-- /readme_example --> README holds one C block; it must be
what stands in the example between its two marks, without the indentation. Prints TAP.
SPDX-License-Identifier: MIT
"""
import difflib
import re
import sys
import textwrap
from pathlib import Path

BLOCK = re.compile(r"^<!-- readme_example -->\n+```c\n(.*?)^```\n+<!-- /readme_example -->$", re.M | re.S)
SHOWN = re.compile(r"^ */\* README begins \*/\n(.*?)^ */\* README ends \*/$", re.M | re.S)
MOST_LINES = 15


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_readme.py README.md EXAMPLE.c")
    readme, example = (Path(path).read_text() for path in sys.argv[1:])
    blocks, shown = BLOCK.findall(readme), [textwrap.dedent(text) for text in SHOWN.findall(example)]
    same = len(shown) == 1 and blocks == shown
    print(f"{'ok' if same else 'not ok'} 1 - README's example is the one that is compiled")
    if not same:
        print(f"# README has {len(blocks)} such blocks, the example {len(shown)} marked parts")
        for line in difflib.unified_diff("".join(blocks).splitlines(), "".join(shown).splitlines(),
                                         sys.argv[1], sys.argv[2], lineterm=""):
            print("# " + line)
    lines = [line for text in shown for line in text.splitlines() if line.strip()]
    short = 0 < len(lines) <= MOST_LINES
    print(f"{'ok' if short else 'not ok'} 2 - it has at most {MOST_LINES} lines")
    print("1..2")
    return 0 if same and short else 1


if __name__ == "__main__":
    sys.exit(main())
