# SPDX-License-Identifier: BSD-3-Clause
"""Storage, machines and servers of Debian that connect by the system's librdmacm, for tests/interop/programs."""
import os
import socket
import time

from programs_cm import SYSFS, Pair, begin, digest, random_file, wait_listener
from verbs_rig import Failed, free_port

BLOCK = 65536
# Server, client. fio's ids allow no RNR retries: with send a receive waits for each block before the first one goes.
DEPTHS = {'write': (4, 4), 'read': (4, 4), 'send': (320, 4)}


# ---- fio ----

def fio_memory(place, name, depth):
    """A file that fio maps as its buffers, shared: it shows the blocks that were moved."""
    path = os.path.join(place.place, 'fio-' + name)
    with open(path, 'wb') as file:
        file.write(os.urandom((depth + 1) * BLOCK))
    os.chmod(path, 0o666)
    return path


def fio_blocks(path, depth):
    with open(path, 'rb') as file:
        return [file.read(BLOCK) for _ in range(depth)]


def fio_words(name, port, depth, path, *more):
    return ('fio', '--ioengine=rdma', '--port=%d' % port, '--bs=%d' % BLOCK, '--size=20m', '--iodepth=%d' % depth,
            '--mem=mmapshared:' + path, '--scramble_buffers=0', '--name=' + name, *more)


def fio(place, verb, address):
    """Its client has rw=write in any case; the verb says how it uses the memory of the server. With send the
    server checks each block that it receives; else the blocks of one end are found among those of the other."""
    port, check = free_port(), ('--verify=crc32c', '--do_verify=0') if verb == 'send' else ()
    ends = [(name, depth, fio_memory(place, name, depth)) for name, depth in zip(('server', 'client'), DEPTHS[verb])]
    words = [fio_words(name, port, depth, path) for name, depth, path in ends]
    Pair((*words[0], '--rw=read', *check[:1]),
         (*words[1], '--rw=write', *check, '--verb=' + verb, '--hostname=' + address), port,
         r'err= 0', r'err= 0').run(place)
    there, here = (fio_blocks(path, depth) for _, depth, path in ends)
    moved, source = (here, there) if verb == 'read' else (there, here)
    if verb != 'send' and not all(block in source for block in moved):
        raise Failed('%d of %d blocks differ' % (sum(block not in source for block in moved), len(moved)))
    return '20 MB, data checked'


# ---- iSER: tgtd, and QEMU's block driver on libiscsi ----

TARGET = 'iqn.2026-11.test:disk'
INITIATOR = 'iqn.2008-11.org.linux-kvm'  # of qemu-img


def tgt_configure(place, server, control, image):
    """A target with the image. tgtd judges the name of the initiator and its address."""
    environment = {'TGT_IPC_SOCKET': os.path.join(place.place, 'tgt')}
    of = '--tid', '1'
    for words in (('--op', 'new', '--mode', 'target', *of, '-T', TARGET),
                  ('--op', 'new', '--mode', 'logicalunit', *of, '--lun', '1', '-b', image),
                  ('--op', 'bind', '--mode', 'target', *of, '-I', 'ALL'),
                  ('--op', 'bind', '--mode', 'target', *of, '-Q', INITIATOR)):
        try:
            place.finish(place.begin('tgtadm', '-C', control, '--lld', 'iser', *words, options=(), **environment))
        except Failed as failed:
            raise Failed(str(failed), failed.said + '\n-- server:\n' + server.said()) from None


def tgt(place, address):
    """20 MB to a disk and from it, in requests of 64 KiB: this libiscsi serves none above 256 KiB."""
    port = 10000 + os.getpid() % 20000  # tgtd keeps it in a short
    image = random_file(place, 'disk', 20)
    sent, received = random_file(place, 'sent', 20), os.path.join(place.place, 'received')
    server = begin(place, 0, ('tgtd', '-f', '-C', '1', '--iscsi', 'portal=127.0.0.1:%d' % free_port(), '--iser',
                              'port=%d,pool_sz_mb=128' % port), TGT_IPC_SOCKET=os.path.join(place.place, 'tgt'))
    wait_listener(place, port, server)
    tgt_configure(place, server, '1', image)
    url = 'iser://%s:%d/%s/1' % (address, port, TARGET)
    try:
        for source, target, file in (url, received, received), (sent, url, image):
            expected = digest(image if source == url else sent)
            place.finish(begin(place, 1, ('qemu-img', 'dd', '-f', 'raw', '-O', 'raw', 'bs=64k', 'if=' + source,
                                          'of=' + target)))
            if digest(file) != expected:
                raise Failed('the copy differs')
    except Failed as failed:
        raise Failed(str(failed), failed.said + '\n-- server:\n' + server.said()) from None
    server.kill()
    return '20 MB each way, compared'


# ---- QEMU moves a machine ----

GUEST_MB = 128
MOVED_AT, MOVED_MB = 32 << 20, 48


class Machine:
    """One that stands still, and its monitor."""

    def __init__(self, place, side, name, *words):
        self.path = os.path.join(place.place, name)
        self.program = begin(place, side, (
            'qemu-system-x86_64', '-accel', 'tcg', '-M', 'pc', '-m', str(GUEST_MB), '-nodefaults', '-display', 'none',
            '-S', '-monitor', 'unix:%s,server=on,wait=off' % self.path, *words))

    def ask(self, command, timeout_s=60):
        """The answer of the monitor."""
        deadline = time.monotonic() + timeout_s
        with socket.socket(socket.AF_UNIX) as s:
            while s.connect_ex(self.path) != 0:
                if time.monotonic() > deadline or self.program.returncode is not None:
                    raise Failed('QEMU has no monitor', self.program.said())
                time.sleep(0.05)
            s.settimeout(timeout_s)
            s.sendall(command.encode() + b'\n')
            text = b''
            while text.count(b'(qemu) ') < 2:
                got = s.recv(65536)
                if not got:
                    raise Failed('QEMU has ended', self.program.said())
                text += got
        return text.decode(errors='replace')


def qemu(place, address):
    """The memory of a machine arrives at another host as it was."""
    port = free_port()
    image, moved = random_file(place, 'memory', MOVED_MB), os.path.join(place.place, 'moved')
    target = Machine(place, 0, 'there', '-incoming', 'rdma:%s:%d' % (address, port))
    wait_listener(place, port, target.program)
    source = Machine(place, 1, 'here', '-device', 'loader,file=%s,addr=%#x,force-raw=on' % (image, MOVED_AT))
    source.ask('migrate rdma:%s:%d' % (address, port), 120)
    said = source.ask('info migrate')
    if 'Migration status: completed' not in said:
        raise Failed('the machine has not moved', '\n-- '.join((said, source.program.said(), target.program.said())))
    said = target.ask('pmemsave %#x %d "%s"' % (MOVED_AT, MOVED_MB << 20, moved))
    if not os.path.exists(moved):
        raise Failed('no memory saved', said)
    if digest(moved) != digest(image):
        raise Failed('its memory differs')
    return '%d MB, %d compared' % (GUEST_MB, MOVED_MB)


# ---- UCX by addresses: its connection manager "rdmacm" ----

UCX = {'UCX_SOCKADDR_TLS_PRIORITY': 'rdmacm', 'UCX_TLS': 'rc_v,self', 'UCX_LOG_LEVEL': 'warn',
       'UCX_WARN_UNUSED_ENV_VARS': 'n'}


def io_demo(place, address, *options):
    """Reads and writes of 1 B to 1 MiB; -q: both ends check the data."""
    port = free_port()
    words = 'io_demo', '-q', '-p', str(port), '-d', '1:1048576', *options
    return Pair(words, (*words, '-o', 'read,write', '-i', '300', address), port, r'(?i)300', ends=False,
                options=SYSFS, **UCX)


IPV4_ALONE = (
    *(('fio ' + verb, lambda p, v=verb: fio(p, v, p.addresses['IPv4'][0])) for verb in DEPTHS),
    ('tgtd iSER', lambda p: tgt(p, p.addresses['IPv4'][0])),
    ('io_demo', lambda p: io_demo(p, p.addresses['IPv4'][0])),
    ('io_demo -A', lambda p: io_demo(p, p.addresses['IPv4'][0], '-A')),
    ('qemu-system-x86_64 migrate', lambda p: qemu(p, p.addresses['IPv4'][0])),
)
