# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for DPDK guests: reserved for the test, given back at its end."""

import os

import proc

_SYSCTL = "/proc/sys/vm/nr_hugepages"
# The number to go back to, in case a test was killed before it could.
_SAVED = "/run/xvs-test-hugepages"


def _get():
    with open(_SYSCTL) as f:
        return int(f.read())


def _set(count):
    with open(_SYSCTL, "w") as f:
        f.write(str(count))


def _restore(count):
    _set(count)
    if os.path.exists(_SAVED):
        os.unlink(_SAVED)


def _free():
    with open("/proc/meminfo") as f:
        return int(next(line for line in f if line.startswith("HugePages_Free")).split()[1])


def reserve(count):
    """Sees to `count` free huge pages; Skip when the machine does not have the memory."""
    before = _get()
    if os.path.exists(_SAVED):
        with open(_SAVED) as f:
            before = int(f.read())
    with open(_SAVED, "w") as f:
        f.write(str(before))
    proc.on_exit(_restore, before)
    missing = count - _free()
    if missing > 0:
        _set(_get() + missing)
    if _free() < count:
        raise proc.Skip(f"cannot reserve {count} huge pages (memory is short or fragmented)")
