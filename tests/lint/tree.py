# SPDX-License-Identifier: BSD-3-Clause
"""The source tree, for the lint tests: which files there are, and code without its comments."""

import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

FOLDERS = ["base", "ring", "bpf", "ports", "switch", "control", "cli", "tests", "bench"]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def files(folders, *endings):
    """Paths below the root, sorted."""
    found = []
    for folder in folders:
        for directory, _, names in os.walk(os.path.join(ROOT, folder)):
            found += [os.path.relpath(os.path.join(directory, n), ROOT)
                      for n in names if n.endswith(endings)]
    return sorted(found)


def sources():
    return files(FOLDERS, ".c", ".h")


_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def comments(text):
    """[(offset, comment)] of C source."""
    return [(m.start(), m.group()) for m in _TOKEN.finditer(text) if m.group()[0] == "/"]


def code(text):
    """C source with comments and strings blanked out."""
    return _TOKEN.sub(lambda m: " " if m.group()[0] == "/" else '""', text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def report(complaints, checked):
    """Prints the complaints and ends the program."""
    for complaint in complaints:
        print(complaint)
    if not checked:
        print("nothing was checked: the tree is not where this test looks")
    print(f"{checked} checked, {len(complaints)} complaints")
    sys.exit(1 if complaints or not checked else 0)
