# SPDX-License-Identifier: BSD-3-Clause
"""
The frame of an integration test: a program of unittest cases that ctest runs. Exit status 0
passed, 1 failed, 77 skipped with the reason printed.

    class Something(harness.Case):
        def test_this(self): ...

    if __name__ == "__main__":
        harness.main(guests=True)
"""

import os
import sys
import time
import unittest

import guest
import netns
import proc

SKIPPED = 77


class Case(unittest.TestCase):
    """unittest.TestCase with the words that these tests use."""

    longMessage = True

    def run(self, result=None):
        start = time.monotonic()
        proc.say(f"---- {self.id().split('.', 1)[-1]}")
        super().run(result)
        proc.say(f"     {time.monotonic() - start:.1f} s")
        return result

    def until(self, what, condition, timeout=10.0):
        return proc.until(what, condition, timeout)


def main(programs=(), guests=False, isolated=True):
    """Checks what the tests need, runs them, exits. `guests`: QEMU guests are needed."""
    proc.init()
    try:
        for program in programs:
            if not os.path.exists(program):
                raise proc.Failure(f"{program} is not built; run scripts/build")
        if isolated:
            netns.isolate()
        if guests:
            guest.require()
    except unittest.SkipTest as e:
        proc.say(f"SKIP: {e}")
        sys.exit(SKIPPED)
    outcome = unittest.main(verbosity=0, exit=False, failfast=False).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    for case, reason in outcome.skipped:
        proc.say(f"SKIP: {case.id()}: {reason}")
    # A class that skips itself in setUpClass() is in `skipped` once, and its tests in no count.
    ran = outcome.testsRun - sum(isinstance(case, Case) for case, _ in outcome.skipped)
    if not ran and not outcome.skipped:
        proc.say("no test was run")
        sys.exit(1)
    sys.exit(0 if ran else SKIPPED)
