"""TAP lines, so that ./dev test counts single tests; and what PyTorch's absence skips. SPDX-License-Identifier: MIT"""
import os

import pytest
from hypothesis import settings

settings.register_profile("short", deadline=None, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=2000)
settings.load_profile("long" if os.environ.get("POSENC_LONG") else "short")


def pytest_addoption(parser):
    parser.addoption("--tap-lines", action="store_true", help="print TAP and nothing else but failures")


def pytest_configure(config):
    if config.getoption("--tap-lines"):
        config.pluginmanager.register(TapLines(), "tap-lines")


class TapLines:
    def __init__(self):
        self.count = 0

    def line(self, ok, report, note=""):
        self.count += 1
        name = report.nodeid.split("/")[-1].replace("#", "no.")
        print(f"\n{'ok' if ok else 'not ok'} {self.count} - {name}{note}", flush=True)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.line(True, report)
        elif report.skipped:
            self.line(True, report, " # SKIP " + report.longrepr[2].removeprefix("Skipped: "))
        elif report.failed:
            self.line(False, report)
            for line in str(report.longrepr).splitlines()[-60:]:
                print("# " + line)

    def pytest_collectreport(self, report):
        if report.failed:
            self.line(False, report)
            print("# " + str(report.longrepr).replace("\n", "\n# "))
        elif report.skipped:
            self.line(True, report, " # SKIP " + report.longrepr[2].removeprefix("Skipped: "))

    def pytest_sessionfinish(self):
        print(f"\n1..{self.count}", flush=True)
