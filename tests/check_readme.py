#!/usr/bin/env python3
"""README's example is the compiled one: check_readme.py README.md examples/readme_example.c

Between the lines <!-- readme_example --> and <!-- /readme_example --> README holds one C block; it must
equal the whole file of the example. Prints TAP. SPDX-License-Identifier: MIT
"""
import difflib
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^<!-- readme_example -->\n+```c\n(.*?)^```\n+<!-- /readme_example -->$", re.M | re.S)
MOST_LINES = 15


def code_of_main(example):
    """The lines of code inside main: no blank ones."""
    body = re.search(r"^int main\(.*?\{\n(.*?)^\}", example, re.M | re.S)
    return [line for line in body.group(1).splitlines() if line.strip()] if body else None


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_readme.py README.md EXAMPLE.c")
    readme, code = (Path(path).read_text() for path in sys.argv[1:])
    blocks = BLOCK.findall(readme)
    same = blocks == [code]
    print(f"{'ok' if same else 'not ok'} 1 - README's example is the one that is compiled")
    if not blocks:
        print(f"# {sys.argv[1]} has no ```c block between <!-- readme_example --> "
              "and <!-- /readme_example -->")
    elif len(blocks) > 1:
        print(f"# {sys.argv[1]} has {len(blocks)} such blocks")
    elif not same:
        for line in difflib.unified_diff(blocks[0].splitlines(), code.splitlines(), sys.argv[1],
                                         sys.argv[2], lineterm=""):
            print("# " + line)
    lines = code_of_main(code)
    short = lines is not None and len(lines) <= MOST_LINES
    print(f"{'ok' if short else 'not ok'} 2 - its main has at most {MOST_LINES} lines")
    if not short:
        print("# there is no main" if lines is None else f"# it has {len(lines)}")
    print("1..2")
    return 0 if same and short else 1


if __name__ == "__main__":
    sys.exit(main())
