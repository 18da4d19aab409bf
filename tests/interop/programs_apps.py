# SPDX-License-Identifier: BSD-3-Clause
"""Storage, machines and servers of Debian that connect by the system's librdmacm, for tests/interop/programs."""
import os

from programs_cm import Pair
from verbs_rig import Failed, free_port

BLOCK = 65536
# Server, client. fio's ids allow no RNR retries: with send a receive waits for each block before the first one goes.
DEPTHS = {'write': (4, 4), 'read': (4, 4), 'send': (320, 4)}


# ---- fio ----

def fio_memory(place, name, depth):
    """A file that fio maps as its buffers, shared: it shows what was moved."""
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
    """Its client has rw=write in any case; what it does to the memory of the server is the verb. With send the
    server checks what it receives, in order; else the blocks of one end are found among those of the other."""
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


IPV4_ALONE = tuple(('fio ' + verb, lambda p, v=verb: fio(p, v, p.addresses['IPv4'][0])) for verb in DEPTHS)
