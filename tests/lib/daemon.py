# SPDX-License-Identifier: BSD-3-Clause
"""xvswitchd under test, and xvsctl to talk to it."""

import json
import os
import time

import proc

XVSWITCHD = os.path.join(proc.BUILD, "xvswitchd")
XVSCTL = os.path.join(proc.BUILD, "xvsctl")


class Daemon:
    """
    A daemon with a run directory of its own. `config`: the text of its configuration file.
    The worker gets the last CPU, everything else of a test runs on the others.
    """

    def __init__(self, name="xvs", config=None, args=()):
        self.run_dir = os.path.join(proc.tmpdir(), name)
        os.makedirs(self.run_dir, exist_ok=True)
        self.log_path = os.path.join(proc.tmpdir(), f"{name}.log")
        self.args = list(args)
        self.process = None
        self.config_path = None
        if config is not None:
            self.set_config(config)

    def path(self, name):
        """A path in the run directory, for a socket."""
        return os.path.join(self.run_dir, name)

    def set_config(self, text):
        self.config_path = os.path.join(proc.tmpdir(), f"{os.path.basename(self.run_dir)}.conf")
        with open(self.config_path, "w") as f:
            f.write(text)

    def command(self):
        cmd = [XVSWITCHD, "--run-dir", self.run_dir, "--worker-cpus", str(proc.worker_cpu())]
        if self.config_path:
            cmd += ["-c", self.config_path]
        return cmd + self.args

    # ---- life cycle ----

    def launch(self):
        """Starts it without waiting for anything."""
        self.process = proc.Process(self.command(), self.log_path)
        return self

    def start(self, timeout=10):
        if not os.path.exists(XVSWITCHD):
            raise proc.Failure(f"{XVSWITCHD} is not built")
        self.launch()

        def answers():
            if not self.process.alive():
                raise proc.Failure(f"xvswitchd ended with {self.process.popen.returncode}:\n"
                                   f"{self.log()[-3000:]}")
            return self.try_ctl("version").returncode == 0
        proc.until("xvswitchd answers", answers, timeout)
        return self

    def stop(self, timeout=10):
        """An orderly end, by SIGTERM; status 0 is expected."""
        self.process.signal(15)
        status = self.process.wait(timeout)
        if status:
            raise proc.Failure(f"xvswitchd ended with {status} after SIGTERM:\n"
                               f"{self.log()[-3000:]}")

    def kill(self):
        """kill -9: a crash."""
        self.process.kill()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def descriptors(self):
        """How many files it has open; one more or less while an xvsctl comes or goes."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def check_alive(self):
        if not self.process.alive():
            raise proc.Failure(f"xvswitchd died with {self.process.popen.returncode}:\n"
                               f"{self.log()[-3000:]}")

    # ---- commands ----

    def try_ctl(self, *words, timeout=15):
        """xvsctl with these words (one string is split at blanks); the CompletedProcess."""
        if len(words) == 1:
            words = words[0].split()
        return proc.run([XVSCTL, "--run-dir", self.run_dir, *words], check=False, timeout=timeout)

    def ctl(self, *words):
        done = self.try_ctl(*words)
        if done.returncode:
            raise proc.Failure(f"`xvsctl {' '.join(words)}` ended with {done.returncode}: "
                               f"{done.stderr.strip()}\nlog of xvswitchd:\n{self.log()[-1500:]}")
        return done.stdout

    def json(self, words):
        text = self.ctl(f"-j {words}")
        try:
            return json.loads(text)
        except ValueError as e:
            raise proc.Failure(f"`xvsctl -j {words}` is not JSON ({e}):\n{text}") from None

    def port(self, name):
        """The object of `port show NAME`."""
        ports = [p for p in self.json(f"port show {name}") if p["name"] == name]
        if len(ports) != 1:
            raise proc.Failure(f"`port show {name}` shows {len(ports)} ports of that name")
        return ports[0]

    def stats(self, name):
        return self.port(name)["stats"]

    def wait_up(self, *names, timeout=15):
        for name in names:
            self.wait_state(name, "up", timeout)

    def wait_state(self, name, state, timeout=15):
        deadline = time.monotonic() + timeout
        while True:
            port = self.port(name)
            if port["state"] == state:
                return port
            if time.monotonic() > deadline:
                raise proc.Failure(f"port {name} is {port['state']} ({port['reason']!r}), not "
                                   f"{state}, after {timeout} s; log:\n{self.log()[-2000:]}")
            time.sleep(0.05)

    def add_vhost(self, name, path=None, mode="server", queues=1):
        path = path or self.path(name + ".sock")
        self.ctl("port", "add", name, "vhost-user", path, mode, "queues", str(queues))
        return path

    def add_af_xdp(self, name, device, mode="auto", queues=1):
        self.ctl("port", "add", name, "af-xdp", device, "queues", str(queues), "mode", mode)
