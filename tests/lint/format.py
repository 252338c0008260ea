#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every source file is as clang-format leaves it (.clang-format). X-macro tables keep their columns
between `clang-format off` and `on`."""

import re
import shutil
import subprocess
import sys

import tree


def main():
    program = shutil.which("clang-format") or shutil.which("clang-format-14")
    if not program:
        print("SKIP: clang-format is not installed")
        sys.exit(77)
    paths = tree.sources()
    done = subprocess.run([program, "--dry-run", "--Werror", "--ferror-limit=1", *paths],
                          cwd=tree.ROOT, capture_output=True, text=True, check=False)
    wrong = [line for line in done.stderr.split("\n") if re.search(r"error: code should be", line)]
    if done.returncode and not wrong:
        wrong = [done.stderr]
    if wrong:
        print("run: clang-format -i FILE")
    tree.report(wrong, len(paths))


if __name__ == "__main__":
    main()
