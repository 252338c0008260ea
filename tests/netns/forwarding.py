#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Two hosts in network namespaces, joined by two AF_XDP ports, native and generic: ping, iperf3 both
ways with the peers' offloads in their default state, VLAN-tagged frames unchanged, short frames
padded with zeros, jumbo frames refused with a counter, nothing sent back to its port.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import harness
import netns
import proc
import traffic

A_MAC, B_MAC = "02:00:00:00:01:0a", "02:00:00:00:01:0b"
ETHERTYPE = 0x88B5  # for local experiments


class Forwarding:
    """The tests; the classes below say in which mode the ports are attached."""

    mode = None

    @classmethod
    def setUpClass(cls):
        cls.a, cls.b = netns.Netns(f"a-{cls.mode}"), netns.Netns(f"b-{cls.mode}")
        netns.veth("xa", cls.a, "192.0.2.1/24", A_MAC, mtu=3000)
        netns.veth("xb", cls.b, "192.0.2.2/24", B_MAC, mtu=3000)
        for host in (cls.a, cls.b):
            host.run(["ip", "link", "set", "eth0", "mtu", "1500"])
        cls.switch = daemon.Daemon(cls.mode).start()
        cls.switch.add_af_xdp("pa", "xa", cls.mode)
        cls.switch.add_af_xdp("pb", "xb", cls.mode)
        cls.switch.wait_up("pa", "pb")
        traffic.wait_reachable(cls.a, cls.b)

    @classmethod
    def tearDownClass(cls):
        cls.switch.check_alive()
        cls.switch.stop()
        for host, device in ((cls.a, "xa"), (cls.b, "xb")):
            host.close()
            proc.run(["ip", "link", "del", device], check=False)

    def test_mode_is_shown(self):
        self.assertEqual(self.switch.port("pa")["mode"], self.mode)

    def test_ping(self):
        traffic.ping(self.a, self.b, count=20, interval=0.02)
        for size in (1, 1472, 4000):
            self.assertIn("3 received", self.b.sh(
                f"ping -c 3 -i 0.02 -W 2 -s {size} {self.a.ip}"))

    def test_tcp(self):
        traffic.tcp(self.a, self.b, megabytes=16)
        traffic.tcp(self.b, self.a, megabytes=16)

    def iperf3(self, *options):
        """One run from a to b; the "end" part of its report."""
        server = self.b.spawn(["iperf3", "-s", "-1", "--forceflush"], cpus=proc.other_cpus())
        proc.until("iperf3 listens", lambda: "listening" in server.log())
        try:
            done = self.a.run(["iperf3", "-c", self.b.ip, "-t", "1", "-J", *options],
                              cpus=proc.other_cpus(), timeout=20)
        finally:
            server.kill()
        return json.loads(done.stdout)["end"]

    def test_iperf3_both_ways(self):
        for way in ([], ["-R"]):
            rate = self.iperf3(*way)["sum_received"]["bits_per_second"] / 1e6
            proc.say(f"     iperf3 {' '.join(way) or 'forward'}: {rate:.0f} Mbit/s")
            self.assertGreater(rate, 100)

    def test_udp_checksums(self):
        """UDP with a partial checksum of the veth peer arrives (iperf3 counts datagrams)."""
        end = self.iperf3("-u", "-b", "20M", "-l", "1200")["sum"]
        self.assertGreater(end["packets"], 500)
        self.assertLess(end["lost_percent"], 20)  # bad checksums would be all of them

    def send_and_receive(self, frames):
        """Sends raw frames from a; returns those that did not arrive at b as they are."""
        sender, receiver = self.a.raw_socket(), self.b.raw_socket()
        missing = []
        for one in frames:
            sender.send(one)
            if netns.receive_matching(receiver, {one}, 3) is None:
                missing.append(one)
        sender.close()
        receiver.close()
        return missing

    def test_vlan_tags_pass_unchanged(self):
        frames = []
        for number, vlan in enumerate(((0x8100, 10), (0x8100, 0x6FFF), (0x8100, 0xA000),
                                       (0x88A8, 100), (0x9100, 7))):
            for dst in (B_MAC, "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:fb"):
                frames.append(netns.frame(dst, A_MAC, ETHERTYPE, b"tag %d" % number, vlan, 100))
        # Two tags, the inner one 802.1Q.
        inner = b"\x00\x0b\x88\xb5two tags"
        frames.append(netns.frame(B_MAC, A_MAC, 0x8100, inner, (0x88A8, 20), 100))
        missing = self.send_and_receive(frames)
        self.assertEqual([m.hex()[:60] for m in missing], [])

    def test_frame_sizes(self):
        missing = self.send_and_receive(
            [netns.frame(B_MAC, A_MAC, ETHERTYPE, b"size %d" % size, None, size)
             for size in (60, 61, 64, 127, 128, 129, 1024, 1513, 1514)])
        self.assertEqual([len(m) for m in missing], [])

    def test_short_frames(self):
        """A frame below 60 bytes arrives, as it is or padded with zeros."""
        sender, receiver = self.a.raw_socket(), self.b.raw_socket()
        for _ in range(8):
            sender.send(netns.frame(B_MAC, A_MAC, ETHERTYPE, b"\xee" * 1400))
        for size in (14, 20, 42, 59):
            short = netns.frame(B_MAC, A_MAC, ETHERTYPE, b"", None, size)
            sender.send(short)
            found = netns.receive_matching(receiver, {short, short.ljust(60, b"\0")}, 3)
            self.assertIsNotNone(found, f"{size} bytes")
        sender.close()
        receiver.close()

    def oversize(self):
        """Frames that port pa refused as too long: the switch's own and the kind's counters."""
        one = self.switch.json("stats pa")[0]
        return one["stats"]["drops"]["oversize"] + one["type_stats"]["xdp_oversize"]

    def test_jumbo_is_refused_with_a_counter(self):
        self.a.run(["ip", "link", "set", "eth0", "mtu", "3000"])
        sender, receiver = self.a.raw_socket(), self.b.raw_socket()
        jumbo = netns.frame(B_MAC, A_MAC, ETHERTYPE, b"jumbo", None, 2900)
        before = self.oversize()
        for _ in range(10):
            sender.send(jumbo)
        self.until("a counter shows the jumbo frames",
                   lambda: self.oversize() == before + 10, 5)
        self.assertIsNone(netns.receive_matching(receiver, {jumbo}, 0.3))
        sender.close()
        receiver.close()
        self.a.run(["ip", "link", "set", "eth0", "mtu", "1500"])
        traffic.ping(self.a, self.b, count=3)

    def test_not_sent_back(self):
        sender = self.a.raw_socket()
        ours = netns.frame("ff:ff:ff:ff:ff:ff", A_MAC, ETHERTYPE, b"back?")
        sender.send(ours)
        seen = 0
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            # Our own socket sees what it sends as an outgoing frame: PACKET_OUTGOING is type 4.
            try:
                data, address = sender.recvfrom(70000)
            except TimeoutError:
                continue
            seen += data == ours and address[2] != 4
        sender.close()
        self.assertEqual(seen, 0)

    def test_counters_add_up(self):
        """All that one port received since the start, the other sent or dropped, to the frame."""
        before = self.switch.stats("pa")["rx_packets"]
        traffic.ping(self.a, self.b, count=50, interval=0.01)
        proc.until("the counters of both ports agree", self.counters_agree)
        self.assertGreaterEqual(self.switch.stats("pa")["rx_packets"] - before, 50)

    def counters_agree(self):
        """True once nothing is on its way: the two ports are asked one after the other."""
        a, b = self.switch.stats("pa"), self.switch.stats("pb")
        return all(x["rx_packets"] == y["tx_packets"] + y["tx_dropped"]
                   for x, y in ((a, b), (b, a)))


class Native(Forwarding, harness.Case):
    """Nothing needs to be set at the peers: the kernel turns off what cannot work."""

    mode = "native"


class Generic(Forwarding, harness.Case):
    """The peers keep segmentation offload; super-frames do not fit, and the switch says so."""

    mode = "generic"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Its input must stay open: at its end nc would close before the sender has begun.
        cls.b.background("sleep 5 | timeout 5 busybox nc -l -p 4001 >/dev/null")
        proc.until("nc listens", lambda: cls.b.try_sh(
            "busybox netstat -ltn | grep -q ':4001 '")[0] == 0)
        cls.a.background(f"dd if=/dev/zero bs=1M count=1 | timeout 5 busybox nc {cls.b.ip} 4001")
        proc.until("the switch warns about super-frames",
                   lambda: "tso off" in cls.switch.port("pa")["warning"], 5)
        for host in (cls.a, cls.b):
            host.run(["ethtool", "-K", "eth0", "tso", "off", "gso", "off"])


if __name__ == "__main__":
    harness.main()
