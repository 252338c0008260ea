#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The command line and the start of the daemon: exit statuses (0, 1 refused, 2 usage), errors on
stderr with what to do, JSON with its keys, configuration files, sockets of the run directory.
"""

import grp
import json
import os
import socket
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import daemon
import harness
import proc

PORT_KEYS = {"name", "type", "state", "reason", "features", "queues", "stats"}
STAT_KEYS = {"rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_dropped", "tx_dropped",
             "drops"}


class Commands(harness.Case):
    """One daemon, many commands."""

    @classmethod
    def setUpClass(cls):
        cls.switch = daemon.Daemon("commands").start()

    def tearDown(self):
        self.switch.check_alive()
        for port in self.switch.json("port show"):
            self.switch.ctl(f"port del {port['name']}")

    def refused(self, *words, status=1):
        done = self.switch.try_ctl(*words)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "", f"{words}: errors go to stderr")
        self.assertTrue(done.stderr.strip(), f"{words}: no reason given")
        self.assertNotIn("\x1b", done.stderr)
        return done.stderr

    def test_version(self):
        self.assertRegex(self.switch.ctl("version"), r"\d+\.\d+")
        self.assertIsInstance(self.switch.json("version"), dict)

    def test_port_show_json(self):
        self.switch.add_vhost("shown")
        port = self.switch.port("shown")
        self.assertLessEqual(PORT_KEYS, set(port))
        self.assertLessEqual(STAT_KEYS, set(port["stats"]))
        self.assertEqual(port["state"], "down")
        self.assertNotEqual(port["reason"], "")
        self.assertIn("shown", self.switch.ctl("port show"))
        for verb in ("port show", "fdb show", "stats", "worker show"):
            self.assertIsInstance(self.switch.json(verb), list, verb)
        self.switch.ctl("port del shown")
        self.assertEqual(self.switch.json("port show"), [])

    def test_usage_errors(self):
        for words in (["nonsense"], ["port"], ["port", "add"], ["port", "add", "x"],
                      ["port", "add", "x", "vhost-user"], ["port", "del"], ["fdb", "add", "1"],
                      ["log", "level"], ["--no-such-option", "version"]):
            self.refused(*words, status=2)

    def test_refusals(self):
        self.assertIn("nosuch", self.refused("port del nosuch"))
        self.assertIn("nosuch", self.refused("port show nosuch"))
        self.refused("fdb add 02:00:00:00:00:01 nosuch")
        self.refused("fdb del 02:00:00:00:00:01")

    def test_bad_values(self):
        for words in (["port", "add", "q", "vhost-user", "q.sock", "queues", "0"],
                      ["port", "add", "q", "vhost-user", "q.sock", "queues", "1k"],
                      ["port", "add", "q", "vhost-user", "q.sock", "queues", "100000"],
                      ["port", "add", "q", "vhost-user", "q.sock", "sideways"],
                      ["fdb", "add", "02:00:00:00:00", "a"],
                      ["log", "level", "loud"]):
            done = self.switch.try_ctl(*words)
            self.assertIn(done.returncode, (1, 2), words)
            self.assertTrue(done.stderr.strip(), words)
        self.assertEqual(self.switch.json("port show"), [])

    def test_bad_names(self):
        for name in ("", "x" * 32, "x" * 300, "../x", "p 1", "p\n1", "p\x1b[1m", "-x", ".x", "é"):
            done = self.switch.try_ctl("port", "add", name, "vhost-user", "n.sock")
            self.assertIn(done.returncode, (1, 2), repr(name))
            self.assertNotIn("\x1b", done.stderr)
        self.assertFalse(os.path.exists(self.switch.path("n.sock")))
        self.switch.ctl("port", "add", "x" * 31, "vhost-user", "n.sock")
        self.switch.ctl("port", "del", "x" * 31)

    def test_duplicates(self):
        path = self.switch.add_vhost("one")
        self.refused("port", "add", "one", "vhost-user", self.switch.path("two.sock"))
        self.assertFalse(os.path.exists(self.switch.path("two.sock")))
        self.refused("port", "add", "two", "vhost-user", path)
        link = os.path.join(proc.tmpdir(), "way-round")
        os.symlink(self.switch.run_dir, link)
        self.refused("port", "add", "two", "vhost-user", f"{link}/one.sock")
        self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
        self.switch.ctl("port del one")
        self.assertFalse(os.path.exists(path))

    def test_foreign_files_stay(self):
        """A path that is not a dead socket of ours is neither replaced nor removed."""
        regular = self.switch.path("regular")
        with open(regular, "w") as f:
            f.write("precious")
        directory = self.switch.path("directory")
        os.mkdir(directory)
        link = self.switch.path("link")
        os.symlink(regular, link)
        live = socket.socket(socket.AF_UNIX)
        live.bind(self.switch.path("live"))
        live.listen()
        for path in (regular, directory, link, self.switch.path("live"),
                     self.switch.path("missing/x.sock"), self.switch.path("y" * 120)):
            self.assertIn(os.path.basename(path)[:20],
                          self.refused("port", "add", "p", "vhost-user", path))
        with open(regular) as f:
            self.assertEqual(f.read(), "precious")
        self.assertTrue(os.path.islink(link))
        live.close()
        # Now nobody listens: a stale socket is replaced.
        self.switch.ctl("port", "add", "p", "vhost-user", self.switch.path("live"))
        self.switch.ctl("port del p")

    def test_fdb(self):
        self.switch.add_vhost("f")
        self.switch.ctl("fdb add 02:00:00:00:00:aa f")
        entry, = self.switch.json("fdb show")
        self.assertEqual((entry["mac"], entry["port"]), ("02:00:00:00:00:aa", "f"))
        self.assertIn("02:00:00:00:00:aa", self.switch.ctl("fdb show"))
        self.switch.ctl("fdb flush")
        self.switch.ctl("fdb flush f")
        self.assertEqual(len(self.switch.json("fdb show")), 1)  # pinned ones stay
        self.switch.ctl("fdb del 02:00:00:00:00:aa")
        self.assertEqual(self.switch.json("fdb show"), [])
        self.refused("fdb add 01:00:5e:00:00:01 f", status=2)
        self.switch.ctl("fdb add 02:00:00:00:00:bb f")
        self.switch.ctl("port del f")
        self.assertEqual(self.switch.json("fdb show"), [])

    def test_workers(self):
        workers = [w for w in self.switch.json("worker show") if w.get("role") == "worker"]
        self.assertEqual([w["cpu"] for w in workers], [proc.worker_cpu()])
        self.switch.ctl("worker show")

    def test_log_level(self):
        for level in ("debug", "error", "info"):
            self.switch.ctl(f"log level {level}")

    def test_no_daemon(self):
        done = proc.run([daemon.XVSCTL, "--run-dir", "/nonexistent", "version"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent", done.stderr)

    def test_control_socket(self):
        """Its mode is 0660; garbage and half lines do no harm."""
        path = self.switch.path("control.sock")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
        clients = []
        for data in (b"", b"{", b"\0\xff garbage\n", b"[1,2]\n", b"x" * 200_000, b"{}\n" * 100):
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            client.setblocking(False)
            try:
                client.send(data)
            except OSError:
                pass
            clients.append(client)
        self.switch.ctl("version")
        for client in clients:
            client.close()
        self.switch.ctl("version")


class Start(harness.Case):
    """How the daemon starts, and how it refuses to."""

    def launch(self, name, config=None, args=(), status=None):
        """Runs a daemon to its end; its exit status must be `status`. Returns its output."""
        one = daemon.Daemon(name, config, args)
        one.launch()
        self.assertEqual(one.process.wait(10), status, one.log())
        return one.log()

    def test_configuration(self):
        switch = daemon.Daemon("configured")
        switch.set_config(f"""
            # two ports
            port add a vhost-user {switch.path('a.sock')}
            port add b vhost-user {switch.path('b.sock')} client queues 2   # comment

            fdb add 02:00:00:00:00:01 a
            log level debug
        """)
        switch.start()
        self.assertEqual([p["name"] for p in switch.json("port show")], ["a", "b"])
        self.assertEqual(len(switch.port("b")["queues"]), 2)
        self.assertEqual(len(switch.json("fdb show")), 1)
        switch.stop()
        self.assertEqual([n for n in os.listdir(switch.run_dir) if n.endswith(".sock")], [])

    def test_wrong_lines(self):
        good = "port add a vhost-user a.sock\n"
        for number, line in enumerate(("port add a vhost-user b.sock", "prot add b vhost-user x",
                                       "port add b vhost-user b.sock queues many",
                                       "port add b tunnel x", "port show", "fdb add 1:2 a",
                                       "fdb add 02:00:00:00:00:01 nosuch", "log level loud",
                                       "port add c vhost-user a.sock")):
            name = f"wrong{number}"
            text = self.launch(name, good + "\n" + line + "\n", status=1)
            self.assertIn(f"{name}.conf:3:", text, line)
            text = self.launch(name, good + "\n" + line + "\n", ["-t"], status=1)
            self.assertIn(f"{name}.conf:3:", text, line)
            self.assertFalse(os.path.exists(
                os.path.join(proc.tmpdir(), name, "control.sock")), line)

    def test_check_only(self):
        self.launch("checked", "port add a vhost-user a.sock\n", ["-t"], status=0)
        self.assertEqual(os.listdir(os.path.join(proc.tmpdir(), "checked")), [])

    def test_missing_file(self):
        text = self.launch("missing", None, ["-c", "/nonexistent.conf"], status=1)
        self.assertIn("/nonexistent.conf", text)

    def test_bad_options(self):
        self.launch("options", None, ["--no-such-option"], status=2)
        self.assertIn(self.launch_status("options", ["--worker-cpus", "4096"]), (1, 2))
        self.assertIn(self.launch_status("options", ["--worker-cpus", "x"]), (1, 2))

    def launch_status(self, name, args):
        one = daemon.Daemon(name, None, args)
        one.launch()
        return one.process.wait(10)

    def test_second_daemon_is_refused(self):
        first = daemon.Daemon("first").start()
        path = first.add_vhost("a")
        second = daemon.Daemon("first")
        second.log_path += ".second"
        second.launch()
        self.assertEqual(second.process.wait(10), 1)
        self.assertIn("another xvswitchd", second.log())
        first.ctl("version")
        # Another run directory, the same guest socket.
        third = daemon.Daemon("third").start()
        done = third.try_ctl("port", "add", "a", "vhost-user", path)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(os.path.exists(path))
        third.stop()
        first.stop()

    def test_stale_sockets_after_a_crash(self):
        switch = daemon.Daemon("stale")
        switch.set_config(f"port add a vhost-user {switch.path('a.sock')}\n")
        for _ in range(5):
            switch.start(timeout=3)
            switch.kill()
            self.assertTrue(os.path.exists(switch.path("a.sock")))
        switch.start()
        switch.stop()
        self.assertFalse(os.path.exists(switch.path("a.sock")))

    def test_socket_mode_and_group(self):
        group = grp.getgrgid(1).gr_name
        switch = daemon.Daemon("modes", None, ["--socket-mode", "0640", "--socket-group", group])
        switch.start()
        info = os.stat(switch.add_vhost("a"))
        self.assertEqual(stat.S_IMODE(info.st_mode), 0o640)
        self.assertEqual(info.st_gid, 1)
        switch.stop()

    def test_quick_end(self):
        """SIGTERM and SIGINT end it at once, also with ports that wait for their guests."""
        for number in (15, 2):
            switch = daemon.Daemon(f"end{number}").start()
            switch.add_vhost("a")
            switch.add_vhost("b", mode="client")
            switch.process.signal(number)
            self.assertEqual(switch.process.wait(3), 0)

    def test_json_is_one_document(self):
        switch = daemon.Daemon("document").start()
        for i in range(20):
            switch.add_vhost(f"p{i}")
        json.loads(switch.ctl("-j port show"))
        json.loads(switch.ctl("-j stats"))
        switch.stop()


if __name__ == "__main__":
    harness.main()
