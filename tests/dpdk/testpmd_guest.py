#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
DPDK guests: one dpdk-testpmd owns both guests' virtio-user devices and forwards between them, so
that frames circulate through the switch. Either side owns the socket; with and without mergeable
buffers; testpmd ends and returns; its memory table changes while frames flow.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import harness
import hugepages
import proc
import testpmd

A_MAC, B_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
PEERS = (f"--eth-peer=0,{B_MAC}", f"--eth-peer=1,{A_MAC}")
FRAMES = 200_000


class TestpmdGuest(harness.Case):
    @classmethod
    def setUpClass(cls):
        if proc.run(["which", "dpdk-testpmd"], check=False).returncode:
            raise proc.Skip("dpdk-testpmd is not installed")
        hugepages.reserve(160)

    def setUp(self):
        self.switch = daemon.Daemon(self._testMethodName).start()
        self.addCleanup(self.stop)

    def stop(self):
        self.switch.check_alive()
        self.switch.stop()

    def guests(self, server, forward="io", **options):
        """A testpmd with both devices; `server`: the guest owns the sockets."""
        vdevs = [testpmd.virtio_user(i, self.switch.path(f"{name}.sock"), mac, server, **options)
                 for i, (name, mac) in enumerate((("a", A_MAC), ("b", B_MAC)))]
        return testpmd.Testpmd(vdevs, forward=forward, args=PEERS)

    def add_ports(self, guest_is_server):
        for name in ("a", "b"):
            self.switch.add_vhost(name, mode="client" if guest_is_server else "server")

    def circulate(self, guests, frames=FRAMES):
        """Frames circulate, and the switch's counters agree with the guests'."""
        before = {name: self.switch.stats(name) for name in ("a", "b")}
        guests.command("start tx_first 4")
        rate = guests.wait_received(frames)
        guests.command("stop")
        own = guests.stats()
        for i, name in enumerate(("a", "b")):
            now = self.switch.stats(name)
            delta = {k: now[k] - before[name][k] for k in
                     ("rx_packets", "tx_packets", "rx_dropped", "tx_dropped")}
            drops = {k: v - before[name]["drops"].get(k, 0) for k, v in now["drops"].items()
                     if v != before[name]["drops"].get(k, 0)}
            for bad in ("bad_chain", "bad_buffer", "runt", "oversize", "buffer_too_small"):
                self.assertNotIn(bad, drops, f"port {name}")
            self.assertGreaterEqual(delta["rx_packets"] + delta["rx_dropped"], frames // 4,
                                    f"port {name}: {delta}")
            # What the guest has sent is what the switch took, but for the ring's contents.
            self.assertLessEqual(delta["rx_packets"], own[i]["tx"] + 2048)
            self.assertGreaterEqual(delta["rx_packets"] + delta["rx_dropped"],
                                    own[i]["tx"] - 2048, f"port {name}: {delta}, {own[i]}")
        proc.say(f"     {rate / 1e6:.2f} million frames per second")
        return rate

    def learned(self):
        return {e["mac"]: e["port"] for e in self.switch.json("fdb show")}

    def check_session(self, server, mergeable):
        self.add_ports(guest_is_server=server)
        guests = self.guests(server, mrg_rxbuf=mergeable).launched()
        self.switch.wait_up("a", "b")
        self.circulate(guests)
        self.assertEqual(self.learned(), {A_MAC: "a", B_MAC: "b"})
        has = any("MRG_RXBUF" in f.upper() for f in self.switch.port("a")["features"])
        self.assertEqual(has, bool(mergeable))
        guests.quit()
        self.switch.wait_state("a", "down", 5)

    def test_switch_is_server_mergeable(self):
        self.check_session(server=False, mergeable=1)

    def test_switch_is_server_not_mergeable(self):
        self.check_session(server=False, mergeable=0)

    def test_switch_is_client_mergeable(self):
        self.check_session(server=True, mergeable=1)

    def test_switch_is_client_not_mergeable(self):
        self.check_session(server=True, mergeable=0)

    def test_in_order(self):
        self.add_ports(guest_is_server=False)
        guests = self.guests(False, in_order=1).launched()
        self.switch.wait_up("a", "b")
        self.circulate(guests)
        guests.quit()

    def test_restarts(self):
        """Testpmd quits, or is killed, and comes back with other options each time."""
        self.add_ports(guest_is_server=False)
        for i in range(4):
            guests = self.guests(False, mrg_rxbuf=i % 2).launched()
            self.switch.wait_up("a", "b")
            guests.command("start tx_first 4")
            guests.wait_received(10_000)
            if i % 2:
                guests.kill()
            else:
                guests.command("stop")
                guests.quit()
            self.switch.wait_state("a", "down", 5)
            self.switch.wait_state("b", "down", 5)
        descriptors = self.switch.descriptors()
        guests = self.guests(False).launched()
        self.switch.wait_up("a", "b")
        guests.kill()
        self.switch.wait_state("a", "down", 5)
        self.switch.wait_state("b", "down", 5)
        self.until("all descriptors are closed",
                   lambda: self.switch.descriptors() <= descriptors, 3)

    def test_memory_table_changes_while_frames_flow(self):
        """Attaching a device with large rings makes DPDK map more memory, piece by piece, and send
        the table again each time. Around that it disables its rings: only frames that arrive
        meanwhile may be lost, though on a busy machine that can be all those that circulate."""
        self.add_ports(guest_is_server=False)
        for i in range(3):
            self.switch.add_vhost(f"more{i}", queues=8)
        vdevs = [testpmd.virtio_user(i, self.switch.path(f"{name}.sock"), mac)
                 for i, (name, mac) in enumerate((("a", A_MAC), ("b", B_MAC)))]
        guests = testpmd.Testpmd(vdevs, args=PEERS, eal_args=["-m", "8"]).launched()
        self.switch.wait_up("a", "b")
        guests.command("start tx_first 4")
        guests.wait_received(20_000)
        for i in range(3):
            guests.command("port attach " + testpmd.virtio_user(
                2 + i, self.switch.path(f"more{i}.sock"), f"02:00:00:00:01:0{i}",
                queue_size=16384, queues=8, cq=1))
            guests.command("stop")
            guests.command("start tx_first 4")
            guests.wait_received(20_000)
        guests.command("stop")
        for name in ("a", "b"):
            drops = {k: v for k, v in self.switch.stats(name)["drops"].items() if v}
            drops.pop("no_destination", None)
            self.assertEqual(drops, {}, f"port {name}")
        guests.quit()


if __name__ == "__main__":
    harness.main()
