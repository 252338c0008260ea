#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The folder graph of docs/ARCHITECTURE.md: a folder may include its own headers and those of the
folders listed here. cli/ sees of control/ only headers whose first comment says that xvsctl shares
them (PROTOCOL below). Only control/, cli/, tests/ and bench/ print.
"""

import re

import tree

MAY_SEE = {
    "base": set(),
    "ring": {"base"},
    "bpf": {"base"},
    "ports": {"base", "ring", "bpf"},
    "switch": {"base", "ring", "bpf", "ports"},
    "control": {"base", "ring", "bpf", "ports", "switch"},
    "cli": {"base"},
    "tests": set(tree.FOLDERS),
    "bench": set(tree.FOLDERS),
}
PROTOCOL = {"control/protocol.h"}

PRINTS = re.compile(r"\b(printf|fprintf|puts|fputs|putchar|perror|vprintf|vfprintf)\s*\(")
MAY_PRINT = {"control", "cli", "tests", "bench"}
PRINTS_FOR_ALL = {"base/log.c"}


def allowed(folder, header):
    target = header.split("/")[0]
    if target not in tree.FOLDERS or target == folder:
        return True
    return target in MAY_SEE[folder] or (folder == "cli" and header in PROTOCOL)


def complaints():
    for path in tree.sources():
        folder = path.split("/")[0]
        text = tree.read(path)
        for number, line in enumerate(text.split("\n"), 1):
            include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if include and not allowed(folder, include.group(1)):
                yield f"{path}:{number}: {folder}/ must not include {include.group(1)}"
        if folder not in MAY_PRINT and path not in PRINTS_FOR_ALL:
            plain = tree.code(text)
            for found in PRINTS.finditer(plain):
                yield f"{path}: {found.group(1)}(): only {', '.join(sorted(MAY_PRINT))} print"


if __name__ == "__main__":
    tree.report(list(complaints()), len(tree.sources()))
