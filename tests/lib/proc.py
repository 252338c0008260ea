# SPDX-License-Identifier: BSD-3-Clause
"""
Processes, waiting and cleaning up, for everything under tests/ and for the demo.

Rules that the rest relies on:
* No fixed sleeps: until() polls a condition with a deadline and names what it waited for.
* Whatever is made is registered with on_exit() at once. The stack unwinds at the end of the
  program, after a failure, on SIGINT, SIGTERM and SIGHUP.
* Children die with us even after kill -9 (PR_SET_PDEATHSIG), and the network of a test lives in
  namespaces without a name (see netns.py) that end with their last process: nothing is left
  behind that a later run would have to clear.
"""

import atexit
import ctypes
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.realpath(os.environ.get("XVS_BUILD", os.path.join(ROOT, "build")))
CACHE = os.path.realpath(os.environ.get("XVS_CACHE", os.path.join(ROOT, "build")))

libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


class Failure(Exception):
    """A step went wrong; the text says which and how, with the output that explains it."""


class Skip(unittest.SkipTest):
    """This machine cannot run the test; the text says why."""


# ---- cleaning up ----

_undo = []


def on_exit(fn, *args):
    """Registers fn(*args), to be called in reverse order at the end of the program."""
    _undo.append((fn, args))


def cleanup():
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    while _undo:
        fn, args = _undo.pop()
        try:
            fn(*args)
        except Exception:  # one failed step must not keep the others from running
            traceback.print_exc()


def _on_signal(number, _frame):
    raise KeyboardInterrupt(f"signal {number}")  # the one exception that unittest lets pass


def init():
    """Installs the handlers. Called once by harness.main() and by the demo."""
    atexit.register(cleanup)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, _on_signal)


_tmp = None


def tmpdir():
    """
    A directory of this program, removed at its end; one that a program left behind when it was
    killed goes with the next. Short: socket paths end at 107 bytes.
    """
    global _tmp
    if _tmp is None:
        for stale in glob.glob(os.path.join(tempfile.gettempdir(), "xvs-*-*")):
            pid = os.path.basename(stale).split("-")[1]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                shutil.rmtree(stale, ignore_errors=True)
        _tmp = tempfile.mkdtemp(prefix=f"xvs-{os.getpid()}-")
        on_exit(shutil.rmtree, _tmp, True)
    return _tmp


# ---- waiting ----

def until(what, condition, timeout=10.0, interval=0.02):
    """Returns the first true value of condition(); raises Failure when time is up."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not so within {timeout:g} s")
        time.sleep(interval)


# ---- running ----

def _child_setup(cpus, unshare_flags):
    def setup():
        os.setpgid(0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, signal.SIG_DFL)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if unshare_flags and libc.unshare(unshare_flags):
            os._exit(126)
    return setup


def quote(cmd):
    return " ".join(shlex.quote(word) for word in cmd)


def run(cmd, check=True, timeout=60, stdin=None, cpus=None):
    """Runs cmd to its end; returns the CompletedProcess with text output."""
    try:
        done = subprocess.run(cmd, input=stdin, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL if stdin is None else None,
                              preexec_fn=_child_setup(cpus, 0))
    except subprocess.TimeoutExpired as e:
        raise Failure(f"`{quote(cmd)}` did not end within {timeout} s:\n{e.stdout}") from None
    if check and done.returncode:
        raise Failure(f"`{quote(cmd)}` ended with {done.returncode}:\n"
                      f"{done.stdout}{done.stderr}".rstrip())
    return done


class Process:
    """A background process with its output in a file; stopped at the end of the program."""

    def __init__(self, cmd, log, cpus=None, unshare_flags=0, stdin=subprocess.DEVNULL, env=None):
        self.cmd = cmd
        self.log_path = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(cmd, stdin=stdin, stdout=out, stderr=out, env=env,
                                          preexec_fn=_child_setup(cpus, unshare_flags))
        on_exit(self.kill)

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def wait(self, timeout=10):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"`{self.cmd[0]}` did not end within {timeout} s; its output:\n"
                          f"{self.log()[-2000:]}") from None

    def signal(self, number):
        if self.alive():
            self.popen.send_signal(number)

    def kill(self):
        """Ends it and what it has started (its process group)."""
        if self.alive():
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(30)


# ---- the two kinds of CPU ----

def worker_cpu():
    """The CPU for the switch's worker: the last one."""
    return max(os.sched_getaffinity(0))


def other_cpus():
    """CPUs for guests and everything else; the worker's own only if there is no other."""
    cpus = os.sched_getaffinity(0)
    return (cpus - {worker_cpu()}) or cpus


def say(text):
    print(text, flush=True)


def warn(text):
    print(text, file=sys.stderr, flush=True)
