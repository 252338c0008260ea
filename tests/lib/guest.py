# SPDX-License-Identifier: BSD-3-Clause
"""
A real Linux guest in QEMU, attached over vhost-user, and a way to run commands in it.

Commands travel over the guest's second serial port, a Unix socket on our side, as one line of
base64 each way (image.py has the guest's half). Any shell text may be run; its output and exit
status come back. The console, with all kernel messages, is in a file.
"""

import base64
import os
import socket
import time

import image
import proc

QEMU = "qemu-system-x86_64"
_BOOT_ARGS = ("console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on "
              "net.ifnames=0 ipv6.disable=1")


def _kvm_boots():
    """A /dev/kvm that exists may still hang: boot the guest's kernel with a time limit."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    log = os.path.join(proc.tmpdir(), "kvm-trial.log")
    trial = proc.Process([QEMU, "-machine", "pc,accel=kvm", "-cpu", "host", "-m", "256M",
                          "-display", "none", "-monitor", "none", "-nodefaults", "-no-reboot",
                          "-serial", "stdio", "-kernel", image.KERNEL, "-initrd", image.INITRAMFS,
                          "-append", "console=ttyS0 panic=-1"], log)
    try:
        proc.until("KVM boots", lambda: "Run /init" in trial.log() or not trial.alive(), 5)
        return trial.alive()
    except proc.Failure:
        return False
    finally:
        trial.kill()


def accelerator():
    """"kvm" if it really works, else "tcg". Tried once per boot of this machine."""
    known = os.path.join(image.DIR, "accelerator")
    with open("/proc/sys/kernel/random/boot_id") as f:
        boot = f.read().strip()
    try:
        with open(known) as f:
            tried, answer = f.read().split()
        if tried == boot:
            return answer
    except (OSError, ValueError):
        pass
    answer = "kvm" if _kvm_boots() else "tcg"
    with open(known, "w") as f:
        f.write(f"{boot} {answer}\n")
    return answer


def require():
    """The image and the accelerator, made ready; Skip when this machine cannot have guests."""
    if proc.run(["sh", "-c", f"command -v {QEMU}"], check=False).returncode:
        raise proc.Skip(f"{QEMU} is not installed")
    try:
        image.ensure()
    except proc.Failure as e:
        raise proc.Skip(f"no guest image: {e}") from None
    accelerator()


class Guest:
    """
    chardev: what follows `-chardev socket,id=net0,`, e.g. "path=/run/a.sock,reconnect=1" (the
    switch owns the socket) or "path=/run/a.sock,server=on,wait=off" (QEMU owns it).
    netdev: replaces the vhost-user back-end in trials without the switch.
    """

    def __init__(self, name, mac, address, chardev=None, queues=1, smp=1, netdev=None):
        self.name = name
        self.scratch = "/tmp"
        self.mac = mac
        self.address = address
        self.ip = address.split("/")[0]
        self.chardev = chardev
        self.queues = queues
        self.smp = smp
        self.netdev = netdev
        self.directory = os.path.join(proc.tmpdir(), name)
        os.makedirs(self.directory, exist_ok=True)
        self.qemu = None
        self.serial = None
        self._listener = None
        self._buffer = b""
        self._number = 0

    # ---- life cycle ----

    def _command(self):
        accel = accelerator()
        back = ["-netdev", self.netdev] if self.netdev else [
            "-chardev", f"socket,id=net0,{self.chardev}",
            "-netdev", f"vhost-user,id=n0,chardev=net0,queues={self.queues}"]
        # vectors=0: QEMU 7.2 crashes with vhost-user and MSI-X without KVM.
        vectors = 2 * self.queues + 2 if accel == "kvm" else 0
        return [QEMU, "-machine", f"pc,accel={accel},memory-backend=mem",
                "-cpu", "host" if accel == "kvm" else "max", "-smp", str(self.smp),
                "-object", "memory-backend-memfd,id=mem,size=256M,share=on", "-m", "256M",
                "-display", "none", "-monitor", "none", "-nodefaults",
                "-serial", f"file:{self.console_path}",
                "-serial", f"unix:{self._serial_path}",
                *back,
                "-device", f"virtio-net-pci,netdev=n0,mac={self.mac},mq=on,vectors={vectors},"
                           "romfile=",
                "-kernel", image.KERNEL, "-initrd", image.INITRAMFS,
                "-append", f"{_BOOT_ARGS} xvs.ip={self.address}"]

    @property
    def console_path(self):
        return os.path.join(self.directory, "console.log")

    @property
    def _serial_path(self):
        return os.path.join(self.directory, "serial")

    def start(self):
        """
        Starts QEMU; boot() or wait_ready() waits for the guest. QEMU connects its serial port to
        us, not the other way round: what the guest writes before there is a connection is lost.
        """
        if os.path.exists(self._serial_path):
            os.unlink(self._serial_path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._serial_path)
        self._listener.listen()
        self._listener.settimeout(0.5)
        self.qemu = proc.Process(self._command(), os.path.join(self.directory, "qemu.log"),
                                 cpus=proc.other_cpus())
        return self

    def boot(self, timeout=60):
        self.start()
        self.wait_ready(timeout)
        return self

    def wait_ready(self, timeout=60):
        """The guest's init has come to its command loop."""
        self._accept(timeout)
        self._read_until(b"@ready", timeout)

    def reboot(self, timeout=60):
        """Reboots the guest from within; QEMU goes on."""
        self._send("reboot -f")
        self._read_until(b"@ready", timeout)

    def kill(self):
        """QEMU ends as by kill -9."""
        if self.serial:
            self.serial.close()
            self.serial = None
        if self.qemu:
            self.qemu.kill()

    # ---- commands ----

    def _accept(self, timeout):
        """QEMU's serial port. With a socket of the switch's that is not there yet, QEMU waits."""
        deadline = time.monotonic() + timeout
        while self.serial is None:
            if not self.qemu.alive():
                raise proc.Failure(f"QEMU of guest {self.name} ended: {self.qemu.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise proc.Failure(f"guest {self.name}: QEMU does not start within {timeout} s")
            try:
                self.serial = self._listener.accept()[0]
            except TimeoutError:
                continue
        self.serial.settimeout(0.5)
        self._listener.close()
        self._buffer = b""

    def _read_until(self, start, timeout):
        """The next line that begins with `start`, without it."""
        deadline = time.monotonic() + timeout
        while True:
            while b"\n" in self._buffer:
                line, self._buffer = self._buffer.split(b"\n", 1)
                line = line.strip()
                if line.startswith(start):
                    return line[len(start):].strip()
            if time.monotonic() > deadline:
                raise proc.Failure(f"guest {self.name}: no answer within {timeout} s; "
                                   f"console:\n{self.console()[-1500:]}")
            try:
                data = self.serial.recv(65536)
            except TimeoutError:
                continue
            if not data:
                raise proc.Failure(f"QEMU of guest {self.name} ended: {self.qemu.log()[-2000:]}")
            self._buffer += data

    def _send(self, script):
        self._number += 1
        text = base64.b64encode(script.encode() + b"\n")
        self.serial.sendall(b"%d %s\n" % (self._number, text))
        return self._number

    def try_sh(self, script, timeout=60):
        """Runs shell text in the guest; returns (status, output)."""
        number = self._send(script)
        answer = self._read_until(b"@%d " % number, timeout).split()
        output = base64.b64decode(answer[1]) if len(answer) > 1 else b""
        return int(answer[0]), output.decode(errors="replace")

    def sh(self, script, timeout=60):
        """As try_sh(), but a status other than 0 is a Failure; returns the output."""
        status, output = self.try_sh(script, timeout)
        if status:
            raise proc.Failure(f"guest {self.name}: `{script}` ended with {status}:\n{output}")
        return output

    def background(self, script):
        """Runs shell text in the guest without waiting for it."""
        self.sh(f"( {script} ) >/dev/null 2>&1 </dev/null &")

    def console(self):
        with open(self.console_path, errors="replace") as f:
            return f.read()
