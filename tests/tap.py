"""Runs the functions test_* of a module and prints a TAP line for each. SPDX-License-Identifier: MIT"""
import traceback


def run(module):
    """Returns the exit status: 1 if a test failed or there was none."""
    tests = [(name, f) for name, f in vars(module).items() if name.startswith("test_") and callable(f)]
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        text = name.removeprefix("test_").replace("_", " ")
        try:
            skip = test()
            print(f"ok {number} - {text}" + (f" # SKIP {skip}" if skip else ""), flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {text}")
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    print(f"1..{len(tests)}")
    return 1 if failed or not tests else 0
