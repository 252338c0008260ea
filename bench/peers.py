# SPDX-License-Identifier: BSD-3-Clause
"""The switches that are compared, started with two guest ports each, and xvs-bench run on them.

    xvswitch  xvswitchd, learning switch, one worker
    testpmd   dpdk-testpmd, net_vhost ports, `io` forwarding: moves frames without looking at them
    ovs       Open vSwitch with DPDK, one bridge, action NORMAL: learning switch, one PMD thread

Each has its forwarding thread alone on options.switch_cpu. Huge pages are set aside for the run and
given back. Everything that was started is ended by its process id, also on Ctrl-C.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

OVS_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
HUGEPAGES = pathlib.Path("/proc/sys/vm/nr_hugepages")
HUGEPAGES_WANTED = 700  # of 2 MiB, free: 128 for testpmd, 310 for OVS, the rest for guests
START_TIMEOUT = 30


class Failed(Exception):
    """The comparison cannot go on; the text says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def wait_for(condition, what, process=None):
    """Waits until condition() is true."""
    end = time.monotonic() + START_TIMEOUT
    while not condition():
        if process and process.poll() is not None:
            raise Failed(f"{what}: ended with status {process.returncode}")
        if time.monotonic() > end:
            raise Failed(f"{what}: not ready after {START_TIMEOUT} s")
        time.sleep(0.05)


def end_process(process):
    """Ends a process that we started, also one that is stopped."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class System:
    """A switch under test: its process and the sockets of its two guest ports."""

    name = ""
    needs = ()  # programs that must be there
    packages = ()  # of Debian, that have them

    def __init__(self, options, work_dir, stack):
        self.options = options
        self.dir = work_dir / self.name
        self.dir.mkdir()
        self.stack = stack
        self.process = None
        self.sockets = [self.dir / "a.sock", self.dir / "b.sock"]

    def missing(self):
        return [p for p in self.needs if not shutil.which(p)]

    def spawn(self, *argv, **kwargs):
        """Starts a program with its output in a file of the work directory."""
        log = self.stack.enter_context(open(self.dir / f"{pathlib.Path(argv[0]).name}.log", "wb"))
        process = subprocess.Popen([str(a) for a in argv], stdout=log, stderr=log, **kwargs)
        self.stack.callback(end_process, process)
        return process

    def ready(self):
        return all(s.exists() for s in self.sockets)

    def argument(self):
        return f"{self.name}={self.sockets[0]},{self.sockets[1]},{self.process.pid}"


class Xvswitch(System):
    name = "xvswitch"

    def missing(self):
        return [p for p in ("xvswitchd", "xvsctl") if not (self.options.build / p).exists()]

    def ctl(self, *words):
        argv = [self.options.build / "xvsctl", "--run-dir", self.dir, "-j", *words]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def start(self):
        self.process = self.spawn(self.options.build / "xvswitchd", "--run-dir", self.dir,
                                  "--worker-cpus", self.options.switch_cpu)
        wait_for((self.dir / "control.sock").exists, self.name, self.process)
        for socket in self.sockets:
            self.ctl("port", "add", f"bench-{socket.stem}", "vhost-user", str(socket), "server")


class Testpmd(System):
    name = "testpmd"
    packages = ("dpdk",)
    needs = ("dpdk-testpmd",)

    def start(self):
        gen, cpu = self.options.cpu, self.options.switch_cpu
        self.process = self.spawn(
            "dpdk-testpmd", "-l", f"{gen},{cpu}", f"--main-lcore={gen}", "--no-pci", "--in-memory",
            "-m", "256", "--single-file-segments",
            "--vdev", f"net_vhost0,iface={self.sockets[0]}",
            "--vdev", f"net_vhost1,iface={self.sockets[1]}",
            "--", "-i", "--nb-cores=1", "--txd=1024", "--rxd=1024", "--forward-mode=io",
            stdin=subprocess.PIPE)
        wait_for(self.ready, self.name, self.process)
        self.process.stdin.write(b"start\n")
        self.process.stdin.flush()


class Ovs(System):
    name = "ovs"
    packages = ("openvswitch-switch-dpdk", "openvswitch-common")
    needs = (OVS_VSWITCHD, "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-appctl")

    def vsctl(self, *words):
        subprocess.run(["ovs-vsctl", f"--db=unix:{self.dir}/db.sock", "--timeout=20", *words],
                       check=True, env=self.environment, stdout=subprocess.DEVNULL)

    def start(self):
        self.environment = dict(os.environ, OVS_RUNDIR=str(self.dir), OVS_LOGDIR=str(self.dir),
                                OVS_DBDIR=str(self.dir), OVS_SYSCONFDIR=str(self.dir))
        schema = "/usr/share/openvswitch/vswitch.ovsschema"
        subprocess.run(["ovsdb-tool", "create", self.dir / "conf.db", schema], check=True,
                       env=self.environment)
        self.spawn("ovsdb-server", self.dir / "conf.db", f"--remote=punix:{self.dir}/db.sock",
                   f"--unixctl={self.dir}/ovsdb.ctl", env=self.environment)
        wait_for((self.dir / "db.sock").exists, "ovsdb-server")
        other = {
            "dpdk-init": "true",
            "dpdk-extra": '"--no-pci --in-memory"',
            "dpdk-socket-mem": '"256"',
            "dpdk-lcore-mask": hex(1 << self.options.cpu),
            "pmd-cpu-mask": hex(1 << self.options.switch_cpu),
        }
        self.vsctl("--no-wait", "init")
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".",
                   *[f"other_config:{k}={v}" for k, v in other.items()])
        self.process = self.spawn(OVS_VSWITCHD, f"unix:{self.dir}/db.sock",
                                  f"--unixctl={self.dir}/vswitchd.ctl", env=self.environment)
        self.sockets = [self.dir / "ovs-a", self.dir / "ovs-b"]
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")
        for socket in self.sockets:
            self.vsctl("add-port", "br0", socket.name, "--",
                       "set", "Interface", socket.name, "type=dpdkvhostuser")
        wait_for(self.ready, self.name, self.process)


SYSTEMS = (Xvswitch, Testpmd, Ovs)


@contextlib.contextmanager
def huge_pages(wanted=HUGEPAGES_WANTED):
    """Sees to enough free huge pages for the run."""
    before = int(HUGEPAGES.read_text())
    missing = wanted - free_huge_pages()
    try:
        if missing > 0:
            HUGEPAGES.write_text(str(before + missing))
        if free_huge_pages() < wanted:
            raise Failed(f"only {free_huge_pages()} huge pages of 2 MiB to be had, "
                         f"{wanted} wanted")
        yield
    finally:
        HUGEPAGES.write_text(str(before))


def free_huge_pages():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("HugePages_Free:"):
            return int(line.split()[1])
    return 0


def install(packages):
    """Tries to install Debian packages without starting their services."""
    say(f"installing {', '.join(packages)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")
    apt = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    try:
        subprocess.run(apt, check=True, env=environment, stdout=subprocess.DEVNULL, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"not installed: {error}")


def bench_start(options, systems, scenario, *words):
    """Starts one scenario of xvs-bench."""
    argv = [options.build / "xvs-bench", scenario, "--json", "--cpu", options.cpu,
            "--switch-cpu", options.switch_cpu, *options.generator, *words]
    for system in systems:
        argv += ["--system", system.argument()]
    return subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE)


def bench_rows(process, scenario):
    """Waits for the end of xvs-bench; its rows."""
    try:
        out = process.communicate()[0]
    except BaseException:
        end_process(process)
        raise
    if process.returncode:
        raise Failed(f"xvs-bench {scenario} ended with status {process.returncode}")
    return json.loads(out)["results"]


def bench(options, systems, scenario, *words):
    return bench_rows(bench_start(options, systems, scenario, *words), scenario)
