# SPDX-License-Identifier: BSD-3-Clause
"""The virtual machine with Linux rxe: the files that it needs of Debian, and the command that boots it.

Its network card is the vhost-user port of an HCA, so neither root nor a network interface is needed.
"""
import ctypes
import os
import shutil
import signal
import subprocess

import image

HERE = os.path.dirname(os.path.abspath(__file__))
INIT = os.path.join(HERE, 'peer/init')
QEMU = 'qemu-system-x86_64'
PACKAGES = ('qemu-system-x86', 'busybox-static', 'iproute2', 'ibverbs-providers')
MTU = 4200
MAC = '02:00:00:77:00:02'
MEMORY_MB = 384
KERNEL_OPTIONS = ('console=ttyS0 quiet panic=-1 reboot=t mitigations=off tsc=reliable '
                  'no_timer_check nokaslr audit=0 random.trust_cpu=on cryptomgr.notests '
                  'net.ifnames=0 interop.mtu=%d' % MTU)
# Without carry-less multiplication: emulated, it makes the kernel's ICRC slower than the table does.
EMULATED_CPU = 'Nehalem,+rdrand'


def cache_folder():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(base, 'softhca-interop')


def installed(package):
    query = subprocess.run(['dpkg-query', '-W', '-f', '${db:Status-Status}', package],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return query.stdout == b'installed'


def install_missing(packages=PACKAGES):
    if not shutil.which('dpkg-query'):
        raise image.Missing('this is no Debian')
    missing = [package for package in packages if not installed(package)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise image.Missing('not root; run: apt-get install ' + ' '.join(missing))
    print('== packages: installing', *missing, flush=True)
    image.run('apt-get', '-q', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120',
              'install', *missing, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive'),
              stdin=subprocess.DEVNULL)


def images(peer, programs=()):
    """Kernel and initial file system with `peer`, which the first process runs, and with programs of
    this machine. Raises image.Missing, OSError or subprocess.TimeoutExpired."""
    install_missing()
    return image.build(cache_folder(), peer, INIT, programs)


def machine(work, vmlinux, initrd, kvm, tsc_khz, more=()):
    """The command that boots the guest: its wire and its control channel are sockets in `work`.

    An emulated kernel measures its cycle counter against an emulated timer, and finds any frequency
    at all where the emulator has to wait for a CPU meanwhile: it is told.
    """
    accelerator = ['-accel', 'kvm', '-cpu', 'host'] if kvm else \
        ['-accel', 'tcg,thread=multi', '-cpu', EMULATED_CPU]
    options = KERNEL_OPTIONS
    if tsc_khz and not kvm:
        options += ' tsc_early_khz=%d' % tsc_khz
    return [
        QEMU, '-M', 'q35,usb=off,smbus=off,sata=off,i8042=off,vmport=off,memory-backend=ram',
        *accelerator, '-smp', '2', '-m', str(MEMORY_MB), '-nodefaults', '-no-user-config',
        '-display', 'none', '-no-reboot', '-serial', 'file:' + os.path.join(work, 'console'),
        '-object', 'memory-backend-memfd,id=ram,size=%dM,share=on' % MEMORY_MB,
        '-kernel', vmlinux, '-initrd', initrd, '-append', options,
        '-chardev', 'socket,id=wire,path=' + os.path.join(work, 'wire'),
        '-netdev', 'vhost-user,id=net,chardev=wire',
        # plain interrupts: QEMU 7.2 without KVM does not survive MSI-X with vhost-user
        '-device', 'virtio-net-pci,netdev=net,mac=%s,romfile=,vectors=0' % MAC,
        '-chardev', 'socket,id=control,path=' + os.path.join(work, 'control'),
        '-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=control,name=interop',
        *more,
    ]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(command, **options):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent,
                            **options)


def stop(process):
    if process is None:
        return
    process.kill()
    process.wait()


def tail(path, lines=15):
    try:
        with open(path, errors='replace') as text:
            return ''.join(text.readlines()[-lines:])
    except OSError:
        return ''
