# SPDX-License-Identifier: BSD-3-Clause
"""
Network namespaces without names. isolate() moves the calling program into a network and mount
namespace of its own: the daemon and its interfaces live there, and the machine's interfaces
are out of reach. Each Netns is one more, held by a sleeping child: a "remote host".

A namespace without a name ends with its last process, and its interfaces with it.
"""

import contextlib
import os
import socket
import struct
import time

import proc

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_AUXDATA = 8
_TP_STATUS_VLAN_VALID = 1 << 4
_TP_STATUS_VLAN_TPID_VALID = 1 << 6

_isolated = False


def isolate():
    """Call once, before other threads start. Also gives this program its own /sys and bpffs."""
    global _isolated
    if _isolated:
        return
    if os.geteuid() != 0:
        raise proc.Skip("needs root (network namespaces, XDP)")
    if proc.libc.unshare(CLONE_NEWNET | CLONE_NEWNS):
        raise proc.Skip("the kernel refuses new network namespaces (unshare)")
    proc.run(["mount", "--make-rprivate", "/"])
    proc.run(["mount", "-t", "sysfs", "sysfs", "/sys"])
    proc.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=False)
    proc.run(["ip", "link", "set", "lo", "up"])
    _quiet("")
    _isolated = True


def _quiet(ns_prefix_pid):
    """No IPv6 autoconfiguration: its frames would spoil counts."""
    enter = ["nsenter", "-t", str(ns_prefix_pid), "-n"] if ns_prefix_pid else []
    for scope in ("all", "default"):
        proc.run(enter + ["sh", "-c",
                          f"echo 1 > /proc/sys/net/ipv6/conf/{scope}/disable_ipv6"], check=False)


class Netns:
    def __init__(self, name):
        self.name = name
        self.directory = os.path.join(proc.tmpdir(), f"netns-{name}")
        self.scratch = self.directory
        self.ip = None  # set by veth()
        self.processes = []
        os.makedirs(self.directory, exist_ok=True)
        self.holder = proc.Process(["sleep", "infinity"], os.path.join(self.directory, "holder"),
                                   unshare_flags=CLONE_NEWNET)
        self.run(["ip", "link", "set", "lo", "up"])
        _quiet(self.holder.pid)

    def enter(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n"]

    def run(self, cmd, **kw):
        return proc.run(self.enter() + cmd, **kw)

    def spawn(self, cmd, **kw):
        log = os.path.join(self.directory, f"{os.path.basename(cmd[0])}-{time.monotonic_ns()}")
        process = proc.Process(self.enter() + cmd, log, **kw)
        self.processes.append(process)
        return process

    # The words that traffic.py uses; a Guest has the same.

    def sh(self, script, timeout=60):
        return self.run(["sh", "-c", script], timeout=timeout, cpus=proc.other_cpus()).stdout

    def try_sh(self, script, timeout=60):
        done = self.run(["sh", "-c", script], check=False, timeout=timeout,
                        cpus=proc.other_cpus())
        return done.returncode, done.stdout + done.stderr

    def background(self, script):
        self.spawn(["sh", "-c", script], cpus=proc.other_cpus())

    @contextlib.contextmanager
    def entered(self):
        """Inside the block, new sockets of this program belong to the namespace."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        other = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)
        try:
            if proc.libc.setns(other, CLONE_NEWNET):
                raise proc.Failure("setns failed")
            yield
        finally:
            proc.libc.setns(own, CLONE_NEWNET)
            os.close(own)
            os.close(other)

    def raw_socket(self, device="eth0"):
        """An AF_PACKET socket that sends and receives whole frames on the device."""
        with self.entered():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            sock.bind((device, ETH_P_ALL))
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        sock.settimeout(0.2)
        return sock

    def close(self):
        for process in self.processes:
            process.kill()
        self.holder.kill()


def veth(device, ns, address=None, mac=None, peer="eth0", queues=1, mtu=1500):
    """Makes a pair: `device` here, `peer` in ns with an address like 192.0.2.1/24."""
    q = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
    proc.run(["ip", "link", "add", device, "mtu", str(mtu), *q, "type", "veth",
              "peer", "name", peer, "mtu", str(mtu), *q, "netns", str(ns.holder.pid)])
    if mac:
        ns.run(["ip", "link", "set", peer, "address", mac])
    if address:
        ns.ip = address.split("/")[0]
        ns.run(["ip", "addr", "add", address, "dev", peer])
    ns.run(["ip", "link", "set", peer, "up"])
    proc.run(["ip", "link", "set", device, "up"])


# ---- frames ----

def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def frame(dst, src, ethertype, payload, vlan=None, pad=60):
    """An Ethernet frame; vlan = (tpid, tci) for a tagged one. Padded to `pad` bytes."""
    head = mac_bytes(dst) + mac_bytes(src)
    if vlan:
        head += struct.pack("!HH", *vlan)
    return (head + struct.pack("!H", ethertype) + payload).ljust(pad, b"\0")


def receive_frame(sock):
    """The next frame as it was on the wire, or None after 0.2 s. The kernel hands a VLAN tag
    over beside the frame (PACKET_AUXDATA): it is put back here."""
    try:
        data, aux, _flags, _addr = sock.recvmsg(70000, 256)
    except (TimeoutError, BlockingIOError):
        return None
    for level, kind, content in aux:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _len, _snap, _mac, _net, tci, tpid = struct.unpack("IIIHHHH", content[:20])
            if status & _TP_STATUS_VLAN_VALID:
                if not status & _TP_STATUS_VLAN_TPID_VALID:
                    tpid = 0x8100
                data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
    return data


def receive_matching(sock, wanted, timeout=5.0):
    """Reads frames until one is in the set `wanted`; returns it, or None when time is up."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        got = receive_frame(sock)
        if got is not None and got in wanted:
            return got
    return None
