# SPDX-License-Identifier: BSD-3-Clause
"""
dpdk-testpmd, driven over its prompt: as one DPDK application that owns the guest side of two
virtio-user devices and forwards between them, so that what `start tx_first` injects circulates.

DPDK changes its memory table while it runs (each new memory segment), which is itself a test.
"""

import os
import re
import subprocess
import time

import proc

_count = 0


def virtio_user(index, path, mac, server=False, queue_size=1024, **options):
    """A --vdev text: virtio_user(0, "/run/a.sock", "02:..", mrg_rxbuf=0, packed_vq=0)."""
    text = f"net_virtio_user{index},path={path},mac={mac},queue_size={queue_size}"
    if server:
        text += ",server=1"
    return text + "".join(f",{k}={v}" for k, v in options.items())


def vhost(index, path):
    """A --vdev text for testpmd as the switch (a peer, to try the tests themselves)."""
    return f"net_vhost{index},iface={path}"


class Testpmd:
    def __init__(self, vdevs, forward="io", cpu=None, args=(), eal_args=()):
        global _count
        _count += 1
        cpu = min(proc.other_cpus()) if cpu is None else cpu
        devices = [word for v in vdevs for word in ("--vdev", v)]
        cmd = ["stdbuf", "-o0",  # its prompt is not buffered, so the rest must not be either
               "dpdk-testpmd", "--lcores", f"0@{cpu},1@{cpu}", "--main-lcore=0", "--no-pci",
               "--in-memory", "--single-file-segments", "-m", "192",
               f"--file-prefix=xvs{os.getpid()}-{_count}", "--log-level=lib.eal:4", *eal_args,
               *devices, "--", "-i", "--nb-cores=1", "--txd=1024", "--rxd=1024",
               "--total-num-mbufs=16384", f"--forward-mode={forward}", *args]
        log = os.path.join(proc.tmpdir(), f"testpmd{_count}.log")
        self.process = proc.Process(cmd, log, stdin=subprocess.PIPE)

    def launched(self, timeout=30):
        """Waits for the first prompt (with server=1 it comes after the switch has connected)."""
        self._wait_prompts(1, timeout, "start")
        return self

    def _prompts(self):
        return self.process.log().count("testpmd> ")

    def _wait_prompts(self, count, timeout, what):
        def there():
            if not self.process.alive():
                raise proc.Failure(f"testpmd ended at `{what}`:\n{self.process.log()[-3000:]}")
            return self._prompts() >= count
        try:
            proc.until(f"testpmd answers `{what}`", there, timeout)
        except proc.Failure as e:
            raise proc.Failure(f"{e}\n{self.process.log()[-3000:]}") from None

    def command(self, text, timeout=15):
        """Runs one command; returns what it printed."""
        before = len(self.process.log())
        prompts = self._prompts()
        self.process.popen.stdin.write(text.encode() + b"\n")
        self.process.popen.stdin.flush()
        self._wait_prompts(prompts + 1, timeout, text)
        return self.process.log()[before:]

    def stats(self):
        """[{"rx": packets, "tx": packets, "rx_missed": ..., ...} for each port]"""
        text = self.command("show port stats all")
        ports = []
        for block in re.split(r"NIC statistics for port \d+", text)[1:]:
            values = dict(re.findall(r"([RT]X-\w+):\s+(\d+)", block))
            ports.append({"rx": int(values["RX-packets"]), "tx": int(values["TX-packets"]),
                          "rx_missed": int(values["RX-missed"]),
                          "rx_errors": int(values["RX-errors"]),
                          "tx_errors": int(values["TX-errors"])})
        return ports

    def quit(self, timeout=20):
        self.process.popen.stdin.write(b"quit\n")
        self.process.popen.stdin.flush()
        status = self.process.wait(timeout)
        if status:
            raise proc.Failure(f"testpmd ended with {status}:\n{self.process.log()[-2000:]}")

    def kill(self):
        self.process.kill()

    def received(self):
        return sum(port["rx"] for port in self.stats())

    def wait_received(self, more, timeout=20):
        """Waits until `more` frames have been received since now; returns frames per second."""
        first, t0 = self.received(), time.monotonic()
        now = proc.until(f"{more} frames circulate",
                         lambda: (n := self.received()) - first >= more and n, timeout, 0.2)
        return (now - first) / (time.monotonic() - t0)
