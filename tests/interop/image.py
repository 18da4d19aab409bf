# SPDX-License-Identifier: BSD-3-Clause
"""The kernel and the initial file system of the virtual machine, from Debian packages.

The kernel package is downloaded and unpacked, never installed; programs and libraries are those of
this machine, found by their ELF headers' needs (ldd). Both are kept in the cache directory and made
again when their sources have changed.
"""
import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess

KERNEL = 'linux-image-amd64'  # the cloud flavour has no rdma_rxe
MODULES = ('virtio_pci', 'virtio_console', 'virtio_net', 'crc32_generic', '8021q',
           'ib_uverbs', 'rdma_ucm', 'rdma_rxe')
PROGRAMS = ('ip', 'rdma')
BUSYBOX = '/bin/busybox'
PROVIDER = '/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so'
UNWINDER = '/lib/*-linux-gnu/libgcc_s.so.1'
DRIVER = '/etc/libibverbs.d/rxe.driver'


class Missing(Exception):
    """Something this machine does not have: the test is skipped."""


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            encoding='utf-8', errors='replace', timeout=600, **options)
    if result.returncode:
        raise Missing('%s: %s' % (' '.join(command), result.stdout.strip()[-300:]))
    return result.stdout


class Archive:
    """A cpio archive in the form the kernel unpacks ("newc")."""

    def __init__(self, path):
        self.file = open(path, 'wb')
        self.names = set()

    def entry(self, name, mode, data=b'', device=(0, 0)):
        name = name.strip('/')
        if name in self.names:
            return
        if os.path.dirname(name):
            self.entry(os.path.dirname(name), stat.S_IFDIR | 0o755)
        self.names.add(name)
        encoded = name.encode() + b'\0'
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, device[0], device[1],
                  len(encoded), 0)
        head = b'070701' + b''.join(b'%08x' % field for field in fields) + encoded
        self.file.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))

    def regular(self, name, path, mode=0o755):
        with open(path, 'rb') as source:
            self.entry(name, stat.S_IFREG | mode, source.read())

    def close(self):
        self.entry('TRAILER!!!', 0)
        self.file.close()


def find_program(name):
    for folder in ('/usr/sbin', '/usr/bin', '/sbin', '/bin'):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return os.path.realpath(path)
    raise Missing('%s is not installed' % name)


def libraries(path):
    """Absolute paths of the shared libraries a program or library loads, the loader included.

    Those of this machine: a test may run with a path to others of the same name.
    """
    with open(path, 'rb') as file:
        if file.read(4) != b'\x7fELF':
            return []
    return re.findall(r'(/\S+) \(0x', run('env', '-u', 'LD_LIBRARY_PATH', 'ldd', path))


class Modules:
    def __init__(self, kernel):
        self.paths = {}
        for folder, _, names in os.walk(os.path.join(kernel, 'lib/modules')):
            for name in names:
                if name.endswith('.ko'):
                    self.paths[name[:-3].replace('-', '_')] = os.path.join(folder, name)

    def needs(self, name):
        with open(self.paths[name], 'rb') as module:
            found = re.search(rb'\0depends=([^\0]*)\0', module.read())
        return [need.decode() for need in found.group(1).split(b',') if need] if found else []

    def ordered(self, names, done=None):
        """Modules and the modules that they need, in the order in which they can be loaded."""
        done = [] if done is None else done
        for name in names:
            if name in done or name not in self.paths:
                continue
            self.ordered(self.needs(name), done)
            done.append(name)
        return done


def prune(folder):
    """A kernel package is mostly drivers."""
    modules = Modules(folder)
    needed = set(modules.ordered(MODULES))
    for name, path in modules.paths.items():
        if name not in needed:
            os.unlink(path)
    shutil.rmtree(os.path.join(folder, 'usr'), ignore_errors=True)


def unpack_kernel(cache):
    """Downloads the newest kernel package unless it is there; the folder it is unpacked in."""
    depends = run('apt-cache', 'depends', KERNEL)
    names = re.findall(r'Depends: (linux-image-\S+)', depends)
    if not names:
        raise Missing('apt knows no %s (apt-get update?)' % KERNEL)
    kept = hashlib.sha256(' '.join(MODULES).encode()).hexdigest()[:8]
    folder = os.path.join(cache, '%s-%s' % (names[0], kept))
    if not os.path.isdir(folder):
        run('apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download', names[0], cwd=cache)
        package = max(glob.glob(os.path.join(cache, names[0] + '_*.deb')), key=os.path.getmtime)
        shutil.rmtree(folder + '.new', ignore_errors=True)
        run('dpkg-deb', '-x', package, folder + '.new')
        prune(folder + '.new')
        os.rename(folder + '.new', folder)
        os.unlink(package)
    return folder


def extract_vmlinux(compressed, target):
    """The ELF kernel inside a bzImage: booted directly it need not unpack itself, which is slow
    under emulation."""
    with open(compressed, 'rb') as source:
        data = source.read()
    at = -1
    while True:
        at = data.find(b'\xfd7zXZ\0', at + 1)
        if at < 0:
            raise Missing('%s is not compressed with xz' % compressed)
        try:
            kernel = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data[at:])
        except lzma.LZMAError:
            continue
        if kernel.startswith(b'\x7fELF'):
            break
    with open(target + '.new', 'wb') as out:
        out.write(kernel)
    os.rename(target + '.new', target)


def fingerprint(paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, 'rb') as source:
            digest.update(source.read())
    return digest.hexdigest()


def write_image(target, kernel, peer, init, more):
    archive = Archive(target + '.new')
    archive.entry('dev/console', stat.S_IFCHR | 0o600, device=(5, 1))
    archive.regular('init', init)
    archive.regular('peer', peer)
    archive.regular('bin/busybox', BUSYBOX)
    provider = glob.glob(PROVIDER)
    if not provider:
        raise Missing('ibverbs-providers is not installed')
    archive.regular(provider[0], provider[0])
    archive.regular(DRIVER, DRIVER, 0o644)
    programs = [(find_program(name), 'sbin/' + os.path.basename(name)) for name in (*PROGRAMS, *more)]
    for path, name in programs:
        archive.regular(name, path)
    for path in [path for path, _ in programs] + [peer, provider[0]]:
        for library in libraries(path):
            archive.regular(library, os.path.realpath(library))
    for library in glob.glob(UNWINDER):  # the C library loads it when a thread ends itself
        archive.regular(library, os.path.realpath(library))
    modules = Modules(kernel)
    order = modules.ordered(MODULES)
    if 'rdma_rxe' not in order:
        raise Missing('the kernel package has no rdma_rxe')
    for name in order:
        archive.regular('modules/%s.ko' % name, modules.paths[name], 0o644)
    archive.entry('modules/order', stat.S_IFREG | 0o644,
                  '\n'.join(name + '.ko' for name in order).encode())
    archive.close()
    os.rename(target + '.new', target)


def build(cache, peer, init, programs=()):
    """Returns the paths of kernel and initial file system, or raises Missing. The peer is a program or
    a script; `programs` are names or paths of other programs of this machine that the image includes."""
    os.makedirs(cache, exist_ok=True)
    if not os.path.exists(BUSYBOX):
        raise Missing('busybox-static is not installed')
    with open(os.path.join(cache, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_locked(cache, peer, init, programs)


def build_locked(cache, peer, init, programs):
    kernel = unpack_kernel(cache)
    vmlinux = os.path.join(kernel, 'vmlinux')
    if not os.path.exists(vmlinux):
        extract_vmlinux(glob.glob(os.path.join(kernel, 'boot/vmlinuz-*'))[0], vmlinux)
    parts = [peer, init, __file__, *(find_program(name) for name in programs)]
    image = os.path.join(kernel, 'initrd-' + fingerprint(parts)[:16])
    if not os.path.exists(image):
        # others may be about to boot theirs: the newest few stay
        images = sorted(glob.glob(os.path.join(kernel, 'initrd-*')), key=os.path.getmtime)
        for old in images[:-3]:
            os.unlink(old)
        write_image(image, kernel, peer, init, programs)
    return vmlinux, image
