#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The network device behind an AF_XDP port: it is put back as it was, also after a crash; it may be
deleted, made again, and go down and up while the port is attached; what cannot work is refused with
a reason and leaves nothing behind.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import harness
import netns
import proc
import traffic

A_MAC, B_MAC = "02:00:00:00:02:0a", "02:00:00:00:02:0b"


def link(device):
    return json.loads(proc.run(["ip", "-d", "-j", "link", "show", device]).stdout)[0]


def programs(device):
    """Ids of the XDP programs on the device."""
    xdp = link(device).get("xdp") or {}
    return sorted(a["prog"]["id"] for a in xdp.get("attached", [xdp]) if a.get("prog"))


class Interface(harness.Case):
    def setUp(self):
        self.a, self.b = netns.Netns("a"), netns.Netns("b")
        self.addCleanup(self.close)
        netns.veth("xa", self.a, "192.0.2.1/24", A_MAC)
        netns.veth("xb", self.b, "192.0.2.2/24", B_MAC)
        self.switch = daemon.Daemon(self._testMethodName[:24]).start()

    def close(self):
        for host in (self.a, self.b):
            host.close()
        for device in ("xa", "xb"):
            proc.run(["ip", "link", "del", device], check=False)
        if self.switch.process.alive():
            self.switch.stop()

    def attach(self, mode="auto"):
        self.switch.add_af_xdp("pa", "xa", mode)
        self.switch.add_af_xdp("pb", "xb", mode)
        self.switch.wait_up("pa", "pb")
        traffic.wait_reachable(self.a, self.b)

    def test_put_back_when_the_port_is_deleted(self):
        for mode in ("native", "generic"):
            before = link("xa")["promiscuity"]
            self.attach(mode)
            self.assertEqual(len(programs("xa")), 1)
            self.assertEqual(link("xa")["promiscuity"], before + 1)
            self.switch.ctl("port del pa")
            self.switch.ctl("port del pb")
            self.until("nothing is attached", lambda: not programs("xa") + programs("xb"), 3)
            self.assertEqual(link("xa")["promiscuity"], before)

    def test_put_back_when_the_daemon_ends(self):
        before = link("xa")["promiscuity"]
        self.attach()
        self.switch.stop()
        self.until("nothing is attached", lambda: not programs("xa") + programs("xb"), 3)
        self.assertEqual(link("xa")["promiscuity"], before)

    def test_the_next_start_takes_over_after_a_crash(self):
        before = link("xa")["promiscuity"]
        self.attach()
        for _ in range(5):
            self.switch.kill()
            self.until("promiscuous mode is restored",
                       lambda: link("xa")["promiscuity"] == before, 3)
            self.switch.start()
            self.attach()
        self.switch.stop()
        self.until("nothing is attached", lambda: not programs("xa") + programs("xb"), 3)

    def test_delete_and_add_at_once(self):
        self.attach()
        self.a.background("ping -i 0.002 192.0.2.2")
        for _ in range(30):
            self.switch.ctl("port del pa")
            self.switch.add_af_xdp("pa", "xa")
        self.switch.wait_up("pa")
        traffic.wait_reachable(self.b, self.a)

    def test_device_deleted_and_made_again(self):
        self.attach()
        for _ in range(2):
            proc.run(["ip", "link", "del", "xa"])
            port = self.switch.wait_state("pa", "down", 5)
            self.assertNotEqual(port["reason"], "")
            netns.veth("xa", self.a, "192.0.2.1/24", A_MAC)
            self.switch.wait_up("pa", timeout=10)
            traffic.wait_reachable(self.a, self.b, 10)

    def test_link_down_and_up(self):
        self.attach()
        for where in ([], self.a.enter()):
            device = "eth0" if where else "xa"
            proc.run([*where, "ip", "link", "set", device, "down"])
            port = self.switch.wait_state("pa", "down", 5)
            self.assertNotEqual(port["reason"], "")
            proc.run([*where, "ip", "link", "set", device, "up"])
            self.switch.wait_up("pa", timeout=5)
            traffic.wait_reachable(self.a, self.b, 10)

    def test_link_flaps_under_load(self):
        self.attach()
        self.a.background("ping -f -c 100000 192.0.2.2")
        for _ in range(20):
            proc.run(["ip", "link", "set", "xa", "down"])
            proc.run(["ip", "link", "set", "xa", "up"])
        self.switch.wait_up("pa", timeout=5)
        traffic.wait_reachable(self.b, self.a, 10)

    def refused(self, *words, status=1):
        """The command fails, says why on stderr, and leaves no program behind."""
        before = programs("xa")
        done = self.switch.try_ctl(*words)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        self.assertTrue(done.stderr.strip(), words)
        self.assertEqual(programs("xa"), before)
        return done.stderr

    def test_refusals(self):
        self.assertIn("nosuch", self.refused("port add p af-xdp nosuch"))
        self.refused("port add p af-xdp xa queues 2 mode auto")  # it has one channel
        self.refused("port add p af-xdp xa mode zero-copy")      # veth has none
        self.refused("port add p af-xdp abcdefghijklmnop", status=2)  # 16 characters
        self.attach()
        self.refused("port add again af-xdp xa")
        traffic.ping(self.a, self.b, count=3)

    def test_foreign_program_stays(self):
        """Somebody else's XDP program is neither replaced nor removed."""
        other = daemon.Daemon("other").start()
        other.add_af_xdp("theirs", "xa")
        foreign = programs("xa")
        self.refused("port add pa af-xdp xa mode native")
        self.refused("port add pa af-xdp xa mode generic")
        self.assertEqual(programs("xa"), foreign)
        other.stop()
        self.until("the other daemon detached", lambda: not programs("xa"), 3)
        self.attach()

    def test_several_queues(self):
        for host, device in ((self.a, "xqa"), (self.b, "xqb")):
            netns.veth(device, host, queues=4, peer=f"q-{device}")
        self.switch.add_af_xdp("qa", "xqa", queues=4)
        self.switch.add_af_xdp("qb", "xqb", queues=4)
        self.switch.wait_up("qa", "qb")
        self.a.run(["ip", "addr", "add", "198.18.0.1/24", "dev", "q-xqa"])
        self.b.run(["ip", "addr", "add", "198.18.0.2/24", "dev", "q-xqb"])
        self.assertEqual(len(self.switch.port("qa")["queues"]), 4)
        self.a.sh("ping -c 3 -i 0.05 -W 2 198.18.0.2")
        done = self.a.sh("for i in $(seq 20); do ping -c 1 -W 2 198.18.0.2 >/dev/null || exit 1; "
                         "done; echo good")
        self.assertIn("good", done)

    def test_64_attach_cycles_leave_nothing(self):
        self.attach()
        for port in ("pa", "pb"):
            self.switch.ctl(f"port del {port}")
        descriptors = self.switch.descriptors()
        for _ in range(64):
            self.switch.add_af_xdp("pa", "xa")
            self.switch.ctl("port del pa")
        self.until("all descriptors are closed",
                   lambda: self.switch.descriptors() <= descriptors, 3)


if __name__ == "__main__":
    harness.main()
