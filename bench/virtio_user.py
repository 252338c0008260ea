# SPDX-License-Identifier: BSD-3-Clause
"""The comparison with guests that are not ours: dpdk-testpmd with two virtio-user devices.

Each system gets a testpmd on its two sockets that forwards between its two devices, so that the
frames injected at the start circulate, in both directions, between two known addresses. Systems
take turns of a second; those whose turn it is not are stopped, with their guests. The state of
the machine is asked before and after each turn, and a turn in which it changed does not count. The
rate is that of frames received by the guests, counted by testpmd.
"""
import re
import signal
import statistics
import subprocess
import time

import peers

MACS = ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
SETTLE = 0.2  # seconds
TURN = 0.8
TURNS_MIN = 3  # fewer in one state say nothing
HUGEPAGES_EACH = 200  # the peers take more for guests of this kind
PROMPT = "testpmd> "


class Guests:
    """A testpmd that plays both guests of one system."""

    def __init__(self, options, system):
        self.system = system
        self.log = system.dir / "guests.log"
        devices = []
        for i, (mac, path) in enumerate(zip(MACS, system.sockets)):
            devices += ["--vdev", f"net_virtio_user{i},path={path},mac={mac},queue_size=1024"]
        out = system.stack.enter_context(open(self.log, "wb"))
        argv = ["stdbuf", "-o0", "dpdk-testpmd", "--lcores",
                f"0@{options.cpu},1@{options.cpu}", "--main-lcore=0", "--no-pci", "--in-memory",
                "--single-file-segments", "-m", "192", *devices, "--", "-i", "--nb-cores=1",
                "--txd=1024", "--rxd=1024", "--total-num-mbufs=16384", "--forward-mode=io"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out)
        system.stack.callback(peers.end_process, self.process)
        self.wait_prompts(1)
        self.command(f"set eth-peer 0 {MACS[1]}")
        self.command(f"set eth-peer 1 {MACS[0]}")

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_prompts(self, count):
        try:
            peers.wait_for(lambda: self.text().count(PROMPT) >= count,
                           f"guests of {self.system.name}", self.process)
        except peers.Failed as error:
            raise peers.Failed(f"{error}\n{self.text()[-1000:]}") from None

    def command(self, words):
        """One command; what it printed."""
        before = self.text()
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()
        self.wait_prompts(before.count(PROMPT) + 1)
        return self.text()[len(before):]

    def received(self):
        """Frames received by both guests so far, and when that was."""
        counts = re.findall(r"RX-packets:\s+(\d+)", self.command("show port stats all"))
        return sum(map(int, counts)), time.monotonic()

    def signal(self, number):
        for process in (self.process, self.system.process):
            process.send_signal(number)

    def turn(self):
        """Mpps of one turn."""
        self.signal(signal.SIGCONT)
        self.command("start tx_first 16")
        time.sleep(SETTLE)
        first, begin = self.received()
        time.sleep(TURN)
        last, end = self.received()
        self.command("stop")
        self.signal(signal.SIGSTOP)
        return (last - first) / (end - begin) / 1e6


class State:
    """Asks xvs-bench for the state of the machine."""

    def __init__(self, options, stack):
        argv = [options.build / "xvs-bench", "state", "--cpu", options.cpu, "--switch-cpu",
                options.switch_cpu]
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        stack.callback(peers.end_process, self.process)

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()[0]


def ticks_per_second(rows):
    """Of the time-stamp counter, from what xvs-bench has said."""
    return max(r["cycles_per_packet"] * r["mpps"] * 1e6 for r in rows)


def measure(guests, state, seconds):
    """Rates by system and state."""
    rates = {}
    end = time.monotonic() + seconds * len(guests)
    while time.monotonic() < end:
        for g in guests:
            before = state.ask()
            mpps = g.turn()
            if state.ask() == before and mpps > 0:
                rates.setdefault((g.system.name, before), []).append(mpps)
    return rates


def row(system, mode, size, mpps, ours, hz):
    """A row of results from the rates of one system in one state."""
    median = statistics.median(mpps)
    return {"system": system, "scenario": "vm2vm", "size": size, "ring": "split",
            "generator": "virtio-user", "mode": mode, "mpps": median,
            "cycles_per_packet": hz / 1e6 / median,
            "ratio": statistics.median(ours) / median if ours else 0,
            "spread": (max(mpps) - min(mpps)) / 2 / median, "slices": len(mpps)}


def rows_of(rates, size, hz):
    modes = sorted({mode for _, mode in rates})
    return [row(system, mode, size, mpps, rates.get(("xvswitch", mode)), hz)
            for mode in modes for (system, m), mpps in rates.items()
            if m == mode and len(mpps) >= TURNS_MIN]


def compare(options, systems, stack, sizes, hz):
    """Rows of results; the systems go on running."""
    state = State(options, stack)
    guests = [Guests(options, system) for system in systems]
    rows = []
    for g in guests:
        g.signal(signal.SIGSTOP)
    for size in sizes:
        for g in guests:
            g.signal(signal.SIGCONT)
            g.command(f"set txpkts {size}")
            g.signal(signal.SIGSTOP)
        rows += rows_of(measure(guests, state, options.seconds), size, hz)
    for g in guests:
        peers.end_process(g.process)
        g.system.process.send_signal(signal.SIGCONT)
    return rows
