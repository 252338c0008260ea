#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Two Linux guests and a remote host behind an AF_XDP port: everybody reaches everybody, TCP arrives
with the right checksum, with 1, 2 and 4 queue pairs, and what the command line shows is true.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import guest
import harness
import netns
import proc
import traffic

A_MAC, B_MAC, REMOTE_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:99"


class Guests(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.remote = netns.Netns("remote")
        netns.veth("xv0", cls.remote, "192.0.2.99/24", REMOTE_MAC)
        cls.switch = daemon.Daemon().start()
        a = cls.switch.add_vhost("a", queues=4)
        b = cls.switch.add_vhost("b", queues=4)
        cls.switch.add_af_xdp("uplink", "xv0")
        cls.a = guest.Guest("a", A_MAC, "192.0.2.1/24", f"path={a},reconnect=1", queues=4).start()
        # Fewer queue pairs in the guest than the port has.
        cls.b = guest.Guest("b", B_MAC, "192.0.2.2/24", f"path={b},reconnect=1", queues=2).start()
        cls.a.wait_ready()
        cls.b.wait_ready()
        cls.switch.wait_up("a", "b", "uplink")
        traffic.wait_reachable(cls.a, cls.b)
        traffic.wait_reachable(cls.a, cls.remote)

    def tearDown(self):
        self.switch.check_alive()

    def test_1_ping(self):
        for source, target in ((self.a, self.b), (self.b, self.a), (self.a, self.remote),
                               (self.remote, self.b)):
            traffic.ping(source, target)

    def test_2_large_ping(self):
        """Full-sized frames, and fragments of them."""
        for target in (self.b, self.remote):
            for size in (1472, 4000):
                output = self.a.sh(f"ping -c 3 -i 0.1 -W 2 -s {size} {target.ip}")
                self.assertIn("3 packets received", output)

    def test_3_tcp(self):
        for sender, receiver in ((self.a, self.b), (self.b, self.a), (self.a, self.remote),
                                 (self.remote, self.a)):
            rate = traffic.tcp(sender, receiver, megabytes=8)
            proc.say(f"     {sender.name} -> {receiver.name}: {rate:.0f} Mbit/s")

    def test_4_queue_pairs(self):
        for pairs in (1, 2, 4):
            self.a.sh(f"ethtool -L eth0 combined {pairs}")
            self.assertIn(f"Combined:\t{pairs}", self.a.sh("ethtool -l eth0 | tail -1"))
            for target in (self.b, self.remote):
                traffic.wait_reachable(self.a, target, 5)
                traffic.ping(self.a, target, count=3)
                traffic.tcp(self.a, target, megabytes=2)
                traffic.tcp(target, self.a, megabytes=2)

    def test_5_port_show(self):
        port = self.switch.port("a")
        self.assertEqual(port["type"], "vhost-user")
        self.assertEqual(port["state"], "up")
        self.assertEqual(port["reason"], "")
        for feature in ("VIRTIO_F_VERSION_1", "VIRTIO_NET_F_MRG_RXBUF", "VIRTIO_NET_F_MQ"):
            self.assertTrue(any(feature.endswith(f.upper().replace("-", "_"))
                                for f in port["features"]), f"{feature}: {port['features']}")
        self.assertTrue(port["queues"])
        stats = port["stats"]
        for key in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"):
            self.assertGreater(stats[key], 0, key)
        self.assertGreaterEqual(stats["rx_bytes"], 42 * stats["rx_packets"])
        self.assertIsInstance(stats["drops"], dict)
        self.assertEqual(stats["rx_dropped"] + stats["tx_dropped"], sum(stats["drops"].values()))

    def test_6_fdb_show(self):
        entries = {e["mac"]: e["port"] for e in self.switch.json("fdb show")}
        self.assertEqual((entries.get(A_MAC), entries.get(B_MAC), entries.get(REMOTE_MAC)),
                         ("a", "b", "uplink"))

    def test_7_nothing_is_sent_back(self):
        """No frame returns to its source port: the guest sees no frame with its own address."""
        before = self.a.sh("cat /sys/class/net/eth0/statistics/rx_packets")
        self.a.sh("arping -c 3 -w 3 -I eth0 192.0.2.77; true")  # nobody answers
        after = self.a.sh("cat /sys/class/net/eth0/statistics/rx_packets")
        self.assertLessEqual(int(after) - int(before), 2)


if __name__ == "__main__":
    harness.main(guests=True)
