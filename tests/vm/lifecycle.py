#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Guests and daemon come and go in any order: guest reboot, QEMU killed and started again, the daemon
killed with -9 and started again under running guests, ports deleted and added. Guest a connects to
the switch (switch: server), guest b is connected to by the switch (switch: client).
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import guest
import harness
import netns
import proc
import traffic

CONFIG = """
port add a vhost-user {run}/a.sock server queues 2
port add b vhost-user {run}/b.sock client queues 2
port add uplink af-xdp xv0
"""


class LifeCycle(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.remote = netns.Netns("remote")
        netns.veth("xv0", cls.remote, "192.0.2.99/24", "02:00:00:00:00:99")
        cls.switch = daemon.Daemon()
        cls.switch.set_config(CONFIG.format(run=cls.switch.run_dir))
        cls.switch.start()
        cls.a = guest.Guest("a", "02:00:00:00:00:0a", "192.0.2.1/24",
                            f"path={cls.switch.path('a.sock')},reconnect=1", queues=2).start()
        cls.b = guest.Guest("b", "02:00:00:00:00:0b", "192.0.2.2/24",
                            f"path={cls.switch.path('b.sock')},server=on,wait=off",
                            queues=2).start()
        cls.a.wait_ready()
        cls.b.wait_ready()
        cls.everybody_talks(20)

    @classmethod
    def everybody_talks(cls, timeout=10):
        cls.switch.wait_up("a", "b", "uplink", timeout=timeout)
        for source, target in ((cls.a, cls.b), (cls.remote, cls.a), (cls.remote, cls.b)):
            traffic.wait_reachable(source, target, timeout)
            traffic.ping(source, target, count=3)
        traffic.tcp(cls.a, cls.b, megabytes=2)
        traffic.tcp(cls.b, cls.a, megabytes=2)

    def tearDown(self):
        self.switch.check_alive()

    def test_1_guest_reboot(self):
        for machine in (self.a, self.b):
            machine.reboot()
            self.everybody_talks()

    def test_2_qemu_killed_and_restarted(self):
        for machine in (self.a, self.b):
            machine.kill()
            port = self.switch.wait_state(machine.name, "down", 5)
            self.assertNotEqual(port["reason"], "")
            machine.boot()
            self.everybody_talks()

    def test_3_driver_unbound_and_bound(self):
        self.a.sh("""
            cd /sys/bus/virtio/drivers/virtio_net
            echo virtio0 > unbind && echo virtio0 > bind
            ip addr add 192.0.2.1/24 dev eth0 && ip link set eth0 up""")
        self.everybody_talks()

    def test_4_daemon_killed_and_restarted(self):
        for _ in range(3):
            self.a.background("ping -i 0.01 192.0.2.2")
            self.switch.kill()
            start = time.monotonic()
            self.switch.start()
            self.everybody_talks()
            proc.say(f"     everybody talks {time.monotonic() - start:.1f} s after the restart")
            self.a.sh("killall ping")

    def test_5_daemon_stopped_and_restarted(self):
        self.switch.stop()
        self.switch.start()
        self.everybody_talks()

    def test_6_port_deleted_and_added(self):
        for _ in range(3):
            self.switch.ctl("port del a")
            self.assertTrue(traffic.unreachable(self.b, self.a))
            self.switch.add_vhost("a", queues=2)
            self.switch.ctl("port del b")
            self.switch.add_vhost("b", mode="client", queues=2)
            self.everybody_talks()

    def test_7_switch_before_and_after_qemu(self):
        """Each starts while the other is not there."""
        self.switch.stop()
        self.a.kill()
        self.b.kill()
        self.a.start()
        self.b.start()
        self.switch.start()
        self.a.wait_ready()
        self.b.wait_ready()
        self.everybody_talks()


if __name__ == "__main__":
    harness.main(guests=True)
