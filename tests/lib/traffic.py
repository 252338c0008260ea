# SPDX-License-Identifier: BSD-3-Clause
"""
Traffic between hosts: a host is a Guest or a Netns, anything with name, ip, scratch, sh(),
try_sh() and background(). The tools are busybox's on both sides.
"""

import re
import time

import proc

_port = 5000


def ping(source, target, count=5, interval=0.1, wait=2):
    """Average round trip in ms; a Failure unless every packet came back."""
    status, output = source.try_sh(
        f"ping -c {count} -i {interval} -W {wait} {target.ip}", timeout=60)
    if status or not re.search(rf"\b{count} (packets )?received", output):
        raise proc.Failure(f"{source.name} pings {target.name} ({target.ip}):\n{output}")
    return float(re.search(r"= [\d.]+/([\d.]+)/", output).group(1))


def wait_reachable(source, target, timeout=20):
    """Until one ping comes back; how many seconds that took."""
    start = time.monotonic()
    proc.until(f"{source.name} reaches {target.name}",
               lambda: source.try_sh(f"ping -c 1 -W 1 {target.ip}")[0] == 0, timeout)
    return time.monotonic() - start


def unreachable(source, target):
    return source.try_sh(f"ping -c 2 -W 1 {target.ip}")[0] != 0


def tcp(sender, receiver, megabytes=4, timeout=60):
    """
    Sends random data over TCP; the SHA-256 at both ends must agree. Returns Mbit/s.
    The receiver's nc reads from a FIFO that never ends: at the end of its input it would close.
    """
    global _port
    _port += 1
    there, here = f"{receiver.scratch}/tcp{_port}", f"{sender.scratch}/tcp{_port}"
    receiver.background(
        f"mkfifo {there}.in; exec 3<>{there}.in; "
        f"timeout {timeout} busybox nc -l -p {_port} <&3 >{there}; "
        f"sha256sum <{there} >{there}.tmp; mv {there}.tmp {there}.sum")
    proc.until(f"{receiver.name} listens", lambda: receiver.try_sh(
        f"busybox netstat -ltn | grep -q ':{_port} '")[0] == 0)
    sent = sender.sh(f"dd if=/dev/urandom of={here}.out bs=64k count={megabytes * 16} 2>/dev/null "
                     f"&& sha256sum <{here}.out").split()[0]
    start = time.monotonic()
    sender.sh(f"timeout {timeout} busybox nc {receiver.ip} {_port} <{here}.out",
              timeout=timeout + 10)
    proc.until(f"{receiver.name} has received all",
               lambda: receiver.try_sh(f"test -s {there}.sum")[0] == 0, 20)
    seconds = time.monotonic() - start
    got = receiver.sh(f"cat {there}.sum").split()[0]
    size = int(receiver.sh(f"wc -c <{there}"))
    receiver.sh(f"rm -f {there}*")
    sender.sh(f"rm -f {here}*")
    if size != megabytes << 20 or got != sent:
        raise proc.Failure(f"TCP {sender.name} -> {receiver.name}: {size} bytes with checksum "
                           f"{got}, sent were {megabytes << 20} with {sent}")
    return megabytes * 8.388608 / seconds
