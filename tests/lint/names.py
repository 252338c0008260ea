#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Documents do not rot: every function that a document or a comment calls `name()`, and every path
that a document names in backquotes, exists in the tree.
"""

import ctypes
import glob
import os
import re

import tree

CALL = re.compile(r"(?<![\w.>-])([a-z_][a-z0-9_]*)\(\)")
PATH = re.compile(r"`((?:%s|docs|scripts|packaging)/[\w./-]*\w)`" % "|".join(tree.FOLDERS))
# Made by the build, or examples of something that is to be written.
NOT_IN_TREE = re.compile(r"^(build|.*\bskel\.h)")

# Functions of other libraries that are named because we do not call them; those of the C library
# are known by themselves.
ELSEWHERE = {"rte_eal_init", "sigsetjmp"}
LIBC = ctypes.CDLL(None)


def known_names():
    names = set(ELSEWHERE)
    for path in tree.sources():
        text = tree.code(tree.read(path))
        names.update(re.findall(r"\b([a-z_]\w*)\s*\(", text))
        names.update(re.findall(r"\(\*\s*(?:const\s+)?(\w+)\)\s*\(", text))
        names.update(re.findall(r"#\s*define\s+(\w+)\(", text))
    for path in tree.files(tree.FOLDERS + ["scripts"], ".py"):
        names.update(re.findall(r"^\s*def (\w+)\(", tree.read(path), re.MULTILINE))
    return names


def known(name, names):
    return name in names or hasattr(LIBC, name)


def documents():
    tops = ["README.md", "CONTRIBUTING.md"]
    return [d for d in tops if os.path.exists(os.path.join(tree.ROOT, d))] + \
        [os.path.relpath(p, tree.ROOT) for p in sorted(glob.glob(f"{tree.ROOT}/docs/**/*.md",
                                                                  recursive=True))]


def complaints(names):
    for path in documents():
        text = tree.read(path)
        for found in CALL.finditer(text):
            if not known(found.group(1), names):
                yield f"{path}:{tree.line_of(text, found.start())}: no function {found.group()}"
        for found in PATH.finditer(text):
            target = found.group(1)
            if not NOT_IN_TREE.match(target) and \
                    not glob.glob(os.path.join(tree.ROOT, target)) and \
                    not glob.glob(os.path.join(tree.ROOT, target) + ".*"):
                yield f"{path}:{tree.line_of(text, found.start())}: no file {target}"
    for path in tree.sources():
        text = tree.read(path)
        for offset, comment in tree.comments(text):
            for found in CALL.finditer(comment):
                if not known(found.group(1), names):
                    line = tree.line_of(text, offset + found.start())
                    yield f"{path}:{line}: no function {found.group()}"


if __name__ == "__main__":
    tree.report(list(complaints(known_names())), len(documents()) + len(tree.sources()))
