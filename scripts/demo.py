#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The part of scripts/demo that comes after the build. Everything lives in network namespaces and a
temporary directory of this program, so nothing of the machine is touched but the number of huge
pages, which is restored.
"""

import contextlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))

import daemon
import guest
import hugepages
import image
import netns
import proc
import testpmd
import traffic

PICTURE = r"""
     guest A             guest B            remote host
    Linux, QEMU         Linux, QEMU        (network namespace)
    192.0.2.1           192.0.2.2           192.0.2.99
        |                   |                   |  veth
    virtio ring         virtio ring         AF_XDP socket
        |                   |                   |
   +----+-------------------+-------------------+----+
   |   a                   b                 uplink  |
   |            xvswitchd: one copy,                 |
   |            from ring to ring                    |
   +-------------------------------------------------+
"""
A_MAC, B_MAC, REMOTE_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:99"
C_MAC, D_MAC = "02:00:00:00:00:0c", "02:00:00:00:00:0d"
MEASURE_SECONDS = 4


@contextlib.contextmanager
def step(title):
    """Prints the title while it works, and then what came out of it: note(text)."""
    notes = []
    start = time.monotonic()
    # A title that would run into its result goes on a line of its own.
    print(f"  {title:<58}" if len(title) < 58 else f"  {title}\n{'':<60}", end="", flush=True)
    try:
        yield notes.append
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    except BaseException:
        print("FAILED", flush=True)
        raise
    print(f"{notes[0] if notes else 'done'}, {time.monotonic() - start:.1f} s", flush=True)


def show(switch, words):
    """Runs xvsctl and shows command and output, as an operator sees them."""
    print(f"\n$ xvsctl {words}")
    for line in switch.ctl(words).rstrip("\n").split("\n"):
        print(f"  {line}".rstrip())
    sys.stdout.flush()


def start_switch():
    remote = netns.Netns("remote")
    netns.veth("xv0", remote, "192.0.2.99/24", REMOTE_MAC)
    remote.name = "remote host"
    switch = daemon.Daemon("demo")
    with step("Start xvswitchd"):
        switch.start()
    for words in ("port add a vhost-user a.sock", "port add b vhost-user b.sock",
                  "port add uplink af-xdp xv0"):
        with step(f"$ xvsctl {words}"):
            switch.ctl(words)
    return switch, remote


def start_guests(switch):
    guests = [guest.Guest(name, mac, ip, f"path={switch.path(name + '.sock')},reconnect=1")
              for name, mac, ip in (("a", A_MAC, "192.0.2.1/24"), ("b", B_MAC, "192.0.2.2/24"))]
    with step("Boot guests A and B (Debian's kernel, QEMU)") as note:
        for one in guests:
            one.start()
        for one in guests:
            one.wait_ready()
            one.name = f"guest {one.name.upper()}"
        switch.wait_up("a", "b", "uplink")
        note("with KVM" if guest.accelerator() == "kvm" else "emulated, no KVM here")
    return guests


def show_traffic(a, b, remote):
    for source, target in ((a, b), (a, remote)):
        with step(f"{source.name} pings {target.name}") as note:
            traffic.wait_reachable(source, target)
            note(f"{traffic.ping(source, target, count=10):.2f} ms")
    for sender, receiver in ((a, b), (b, a), (a, remote), (remote, a)):
        with step(f"TCP {sender.name} -> {receiver.name}, 16 MiB, SHA-256 checked") as note:
            note(f"{traffic.tcp(sender, receiver, megabytes=16):.0f} Mbit/s")


def show_rate(switch):
    hugepages.reserve(130)
    with step("Start two DPDK guests (dpdk-testpmd, virtio-user)"):
        for name in ("c", "d"):
            switch.add_vhost(name)
        vdevs = [testpmd.virtio_user(i, switch.path(f"{name}.sock"), mac)
                 for i, (name, mac) in enumerate((("c", C_MAC), ("d", D_MAC)))]
        guests = testpmd.Testpmd(vdevs, args=[f"--eth-peer=0,{D_MAC}", f"--eth-peer=1,{C_MAC}"])
        guests.launched()
        switch.wait_up("c", "d")
    with step("64-byte frames circulate between them") as note:
        guests.command("start tx_first 16")
        guests.wait_received(100_000)
        first, start = switch.stats("c"), time.monotonic()
        first_d = switch.stats("d")
        proc.until("measured", lambda: time.monotonic() - start > MEASURE_SECONDS,
                   MEASURE_SECONDS + 2)
        seconds = time.monotonic() - start
        frames = switch.stats("c")["tx_packets"] - first["tx_packets"] + \
            switch.stats("d")["tx_packets"] - first_d["tx_packets"]
        worker = switch.json("worker show")[0]["last_second"]
        note(f"{frames / seconds / 1e6:.1f} million frames per second")
    print(f"  {'':<58}the worker: {worker['cycles_per_packet']:.0f} cycles for each, "
          f"{worker['busy_share']:.0%} busy")
    show(switch, "worker show")
    guests.command("stop")
    guests.quit()
    for name in ("c", "d"):
        switch.ctl(f"port del {name}")


def demo():
    start = time.monotonic()
    with step("Kernel and initramfs for the guests"):
        image.ensure()
        guest.accelerator()
    netns.isolate()  # from here on the machine's own network is out of reach
    print(PICTURE)
    switch, remote = start_switch()
    a, b = start_guests(switch)
    print()
    show_traffic(a, b, remote)
    show(switch, "port show")
    show(switch, "fdb show")
    print()
    show_rate(switch)
    print()
    with step("Stop; the network device is as it was before"):
        a.kill()
        b.kill()
        switch.stop()
    print(f"\nAll steps succeeded in {time.monotonic() - start:.0f} s. "
          "How to attach your own guests and NICs: README.md")


def main():
    proc.init()
    try:
        demo()
    except proc.Failure as e:
        proc.warn(f"\ndemo failed: {e}")
        sys.exit(1)
    except proc.Skip as e:
        proc.warn(f"\ndemo cannot run on this machine: {e}")
        sys.exit(1)
    except KeyboardInterrupt:
        proc.warn("\ndemo interrupted; cleaning up")
        sys.exit(130)


if __name__ == "__main__":
    main()
