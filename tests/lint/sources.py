#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Each source file: a licence line first; a .c has a theory of operation (product code: 8 lines or
more), a header a comment that is its contract, and a guard; nothing marked as unfinished; no line
above 100 columns, no blanks at line ends; functions of product code at most 100 lines.
"""

import re

import tree

THEORY_LINES = 8
TEST_THEORY_LINES = 3
FUNCTION_LINES = 100
PRODUCT = ("base/", "ring/", "bpf/", "ports/", "switch/", "control/", "cli/")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


def licence(path, text):
    first = text.split("\n", 1)[0]
    wanted = "(GPL-2.0 OR BSD-3-Clause)" if path.startswith("bpf/") and ".bpf." in path \
        else "BSD-3-Clause"
    if "SPDX-License-Identifier:" not in first:
        yield f"{path}:1: no SPDX line"
    elif "BSD-3-Clause" not in first:
        yield f"{path}:1: the licence is {wanted}"


def opening_comment(text):
    """Lines of comments before the first line of code."""
    rest = text.split("\n", 1)[1] if "\n" in text else ""
    found = re.match(r"\s*/\*.*?\*/", rest, re.DOTALL)
    return found.group().strip().count("\n") + 1 if found else 0


def theory(path, text):
    lines = opening_comment(text)
    least = THEORY_LINES if path.startswith(PRODUCT) else TEST_THEORY_LINES
    if path.endswith(".c") and lines < least:
        yield f"{path}:2: the theory of operation has {lines} lines, {least} are the least"
    if path.endswith(".h") and not lines:
        yield f"{path}:2: a header opens with a comment that is its contract"


def guard(path, text):
    if not path.endswith(".h") or path.startswith("bpf/"):
        return
    if "#pragma once" in text:
        yield f"{path}: use a guard, not #pragma once"
    found = re.search(r"^#ifndef (\w+)\n#define (\w+)", text, re.MULTILINE)
    if not found or found.group(1) != found.group(2):
        yield f"{path}: no header guard"


def lines(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if UNFINISHED.search(line):
            yield f"{path}:{number}: unfinished: {line.strip()}"
        if len(line.expandtabs(8)) > 100:
            yield f"{path}:{number}: {len(line.expandtabs(8))} columns"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield f"{path}: the file must end with one newline"


def function_length(path, text):
    """In this style a function body begins and ends with a brace in the first column."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > FUNCTION_LINES:
                yield f"{path}:{start}: a function of {number - start - 1} lines"
            start = None


def complaints():
    for path in tree.sources():
        text = tree.read(path)
        for check in (licence, theory, guard, lines):
            yield from check(path, text)
        if path.startswith(PRODUCT):
            yield from function_length(path, text)
    for path in tree.files(["tests", "scripts", "bench", "cmake"], ".py", ".cmake"):
        yield from lines(path, tree.read(path))


if __name__ == "__main__":
    tree.report(list(complaints()), len(tree.sources()))
