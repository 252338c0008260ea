#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
A skipped integration test is never reported as passed: runs small programs on tests/lib/harness.py
and looks at their exit status.
"""

import os
import subprocess
import sys

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
PROGRAM = """
import sys
sys.path.insert(0, {lib!r})
import harness, proc

class Some(harness.Case):
    @classmethod
    def setUpClass(cls):
        if {skip_class}:
            raise proc.Skip("as asked")
    def test_1(self):
        if {skip_1}:
            raise proc.Skip("as asked")
    def test_2(self):
        self.assertFalse({fail})
        if {skip_2}:
            raise proc.Skip("as asked")

harness.main(isolated=False)
"""
#       skip class, test 1, test 2, fail -> exit status, lines that say what was left out
CASES = ((0, 0, 0, 0, 0, 0),
         (1, 0, 0, 0, 77, 1),
         (0, 1, 0, 0, 0, 1),
         (0, 1, 1, 0, 77, 2),
         (0, 0, 0, 1, 1, 0),
         (0, 1, 0, 1, 1, 0))


def main():
    wrong = 0
    for skip_class, skip_1, skip_2, fail, status, lines in CASES:
        program = PROGRAM.format(lib=LIB, skip_class=skip_class, skip_1=skip_1, skip_2=skip_2,
                                 fail=fail)
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True,
                              text=True, check=False, timeout=30)
        said = done.stdout.count("SKIP: ")
        if done.returncode != status or said != lines:
            wrong += 1
            print(f"{(skip_class, skip_1, skip_2, fail)}: status {done.returncode}, {said} lines; "
                  f"expected {status}, {lines}\n{done.stdout}{done.stderr}")
    print(f"{len(CASES)} checked, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
