# SPDX-License-Identifier: BSD-3-Clause
"""
The guest of the tests and the demo: Debian's cloud kernel (the package is downloaded and
unpacked, not installed) with an initramfs of busybox, ethtool and the virtio-net modules.
Kept in build/guest; made again only when something is missing.

The guest's init (INIT below) gives eth0 the address from the kernel command line and then
serves commands on the second serial port: see guest.py for the other end.
"""

import glob
import os
import re
import shutil

import proc

DIR = os.path.join(proc.CACHE, "guest")
KERNEL = os.path.join(DIR, "vmlinuz")
INITRAMFS = os.path.join(DIR, "initramfs.gz")

# In load order: each needs those before it.
MODULES = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
           "failover", "net_failover", "virtio_net"]

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for m in MODULES; do insmod /modules/$m.ko; done
ip link set lo up
for word in $(cat /proc/cmdline); do
	case $word in xvs.ip=*) ip addr add ${word#xvs.ip=} dev eth0;; esac
done
ip link set eth0 up

# Commands: a line "number base64-of-a-script" comes in; "@number status base64-of-output" goes
# back. Kernel messages go to the other port, so that nothing mixes with the answers.
exec </dev/ttyS1 >/dev/ttyS1 2>/dev/console
stty raw -echo
echo "@ready"
while read -r number script; do
	echo "$script" | base64 -d >/tmp/script
	sh /tmp/script >/tmp/output 2>&1 </dev/null
	echo "@$number $? $(base64 /tmp/output | tr -d '\n')"
done
"""


def _kernel_package():
    """The package that the meta package stands for, e.g. linux-image-6.1.0-57-cloud-amd64."""
    text = proc.run(["apt-cache", "depends", "linux-image-cloud-amd64"]).stdout
    found = re.search(r"Depends: (linux-image-\S+-cloud-amd64)", text)
    if not found:
        raise proc.Failure("apt knows no linux-image-cloud-amd64; run `apt-get update`")
    return found.group(1)


def _fetch_kernel(work):
    proc.run(["sh", "-c", 'cd "$1" && exec apt-get -qq -o Acquire::Retries=5 '
              '-o APT::Sandbox::User=root download "$2"', "sh", work, _kernel_package()],
             timeout=300)
    package, = glob.glob(os.path.join(work, "*.deb"))
    proc.run(["dpkg-deb", "-x", package, os.path.join(work, "unpacked")], timeout=120)
    return os.path.join(work, "unpacked")


def _copy(path, root):
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(os.path.realpath(path), target)


def _copy_program(path, root):
    """The program with the shared libraries it needs."""
    _copy(path, root)
    for library in re.findall(r"(/\S+)", proc.run(["ldd", path]).stdout):
        _copy(library, root)


def _build_initramfs(unpacked, work):
    root = os.path.join(work, "root")
    for directory in ("bin", "sbin", "proc", "sys", "dev", "tmp", "modules"):
        os.makedirs(os.path.join(root, directory))
    shutil.copy("/bin/busybox", os.path.join(root, "bin", "busybox"))
    _copy_program(shutil.which("ethtool") or "/usr/sbin/ethtool", root)
    for module in MODULES:
        found, = glob.glob(f"{unpacked}/lib/modules/*/kernel/**/{module}.ko", recursive=True)
        shutil.copy(found, os.path.join(root, "modules"))
    init = os.path.join(root, "init")
    with open(init, "w") as f:
        f.write(INIT.replace("MODULES", " ".join(MODULES)))
    os.chmod(init, 0o755)
    made = os.path.join(work, "initramfs.gz")
    proc.run(["sh", "-ec", 'cd "$1"; find . | cpio --quiet -o -H newc | gzip -1 >"$2"',
              "sh", root, made])
    return made


def _version():
    """Changes when this file does, so that an old image is not used."""
    return str(os.stat(__file__).st_mtime_ns)


def ensure():
    """Makes the image unless it is there. Raises proc.Failure with the reason."""
    stamp = os.path.join(DIR, "version")
    if os.path.exists(KERNEL) and os.path.exists(INITRAMFS) and os.path.exists(stamp):
        with open(stamp) as f:
            if f.read() == _version():
                return
    work = os.path.join(DIR, "work")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    unpacked = os.path.join(DIR, "kernel")
    if not glob.glob(os.path.join(unpacked, "boot", "vmlinuz-*")):
        shutil.rmtree(unpacked, ignore_errors=True)
        shutil.move(_fetch_kernel(work), unpacked)
    kernel, = glob.glob(os.path.join(unpacked, "boot", "vmlinuz-*"))
    os.replace(_build_initramfs(unpacked, work), INITRAMFS)
    shutil.copy(kernel, KERNEL)
    shutil.rmtree(work)
    with open(stamp, "w") as f:
        f.write(_version())


if __name__ == "__main__":
    proc.init()
    ensure()
    print(DIR)
