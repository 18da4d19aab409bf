# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by the system's librdmacm, for tests/interop/programs: those of rdmacm-utils,
perftest, fio, and an unmodified TCP program on rsockets."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

from verbs_rig import Failed, free_port, last_line

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 240
NEVER = '\n\0'  # no program says it: wait SETTLE for its listener
SETTLE = 2
SYSFS = '--sysfs', '--like', 'mlx5'
TRIES = 4
MEGABYTES = 100
PRELOADED = '/usr/lib/%s-linux-gnu/rsocket/librspreload.so' % os.uname().machine
UDADDY_PORT = 7174  # it has no option for it
# Files that cases need in place of a program
FILES = {'librspreload': PRELOADED, 'cm_storm': '/usr/include/rdma/rdma_cma.h',
         'fi_rma': '/usr/include/rdma/fi_rma.h'}
GROUPS = {'IPv4': '239.1.2.3', 'IPv6': 'ff0e::76'}
AF_IB = '-f', 'gid'


def wait_said(program, text):
    deadline = time.monotonic() + TIMEOUT_S
    while not re.search(text, program.said()) and program.returncode is None and time.monotonic() < deadline:
        time.sleep(0.05)


def wait_listener(place, port, program):
    """Until softhca-ctl shows the listener."""
    deadline = time.monotonic() + TIMEOUT_S
    wanted = re.compile(r'LISTENING +\S+:%d ' % port)
    while program.returncode is None and time.monotonic() < deadline:
        asked = place.begin(place.ctl, 'cm', options=())
        if wanted.search(asked.finish(TIMEOUT_S)):  # on a busy machine a daemon may not answer in time
            return
        time.sleep(0.05)
    raise Failed('the server does not listen (it ended with %s): %s' % (
        program.returncode, last_line(program.said())), program.said())


def begin(place, side, words, **environment):
    return place.begin(*words, options=environment.pop('options', ()),
                       SOFTHCA_DEVICE=place.devices[side], **environment)


class Pair:
    """A server and its clients: the text that each must print, and whether the server ends without a signal."""

    def __init__(self, server, client, port, says='', server_says='', ends=True, clients=1, ready=None,
                 **environment):
        self.server, self.client, self.port = server, client, port
        self.says, self.server_says, self.ends, self.clients = says, server_says, ends, clients
        self.ready, self.environment = ready, environment

    def run(self, place):
        server = begin(place, 0, self.server, **self.environment)
        if self.ready is NEVER:
            time.sleep(SETTLE)
        elif self.ready is not None:
            wait_said(server, self.ready)
        else:
            wait_listener(place, self.port, server)
        try:
            for _ in range(self.clients):
                said = place.finish(begin(place, 1, self.client, **self.environment))
                if not re.search(self.says, said):
                    raise Failed('it does not say %r: %s' % (self.says, last_line(said)), said)
            if self.ends:
                place.finish(server)
        except Failed as failed:
            server.kill()
            raise Failed(str(failed), failed.said + '\n-- server:\n' + server.said()) from None
        if not self.ends:
            wait_said(server, self.server_says)
            server.kill()
        if not re.search(self.server_says, server.said()):
            raise Failed('the server does not say %r' % self.server_says, server.said())


def rping(address, persistent):
    port = free_port()
    words = 'rping', '-a', address, '-p', str(port), '-v', '-V', '-S', '4000'
    server = (*words, '-s', '-P') if persistent else (*words, '-s', '-C', '20')
    return Pair(server, (*words, '-c', '-C', '20'), port, r'rdma-ping-19', ends=not persistent,
                clients=3 if persistent else 1)


def ucmatose(address, *options):
    port = free_port()
    words = ('ucmatose', '-p', str(port), *options)
    return Pair((*words, '-b', address), (*words, '-s', address), port, 'return status 0',
                'return status 0')


def udaddy(address, *options):
    words = ('udaddy', '-c', '5', *options)
    return Pair((*words, '-b', address), (*words, '-s', address), UDADDY_PORT,
                'return status 0', 'return status 0')


def mckey(addresses, group, option='-m'):
    return Pair(('stdbuf', '-oL', 'mckey', option, group, '-b', addresses[0]),
                ('mckey', option, group, '-b', addresses[1], '-s'), 0, 'return status 0', 'return status 0',
                ready='receiving data transfers')


def cmtime(address, connections):
    port = free_port()
    words = 'cmtime', '-p', str(port), '-c', str(connections)
    return Pair((*words, '-b', address), (*words, '-s', address), port, 'disconnect',
                ends=False)  # its server goes on


def simple(server, client, address, *options, bind=()):
    """bind: words by which the server gets its address; without it listens to IPv4."""
    port = free_port()
    return Pair((server, '-p', str(port), *options, *bind), (client, '-s', address, '-p', str(port), *options),
                port, client + ': end 0')


def stream(program, address, options, ready=None):
    port = free_port()
    words = program, '-p', str(port), '-S', '65536', '-C', '100', '-I', '10', *options
    return Pair((*words, '-b', address), (*words, '-s', address), port, r'64k', ready=ready)


def perftest(place, program, address, *options):
    """With -R its server listens a second time, for which its client does not wait: it is tried again."""
    for left in reversed(range(TRIES)):
        port = free_port()
        words = program, '-p', str(port), '-n', '200', '-x', '1', *options
        try:
            return Pair(words, (*words, address), port, r'\n *\d+ +200 ').run(place)
        except Failed as failed:
            if 'REJECTED; error: 8' not in failed.said or left == 0:
                raise


def storm(place, address):
    """Each of 64 synchronous ids has an event channel of its own, as each socket of rsockets has."""
    program = os.path.join(place.place, 'cm_storm')
    subprocess.run(['cc', '-O1', os.path.join(HERE, 'cm/cm_storm.c'), '-o', program, '-lrdmacm', '-libverbs'],
                   check=True)
    said = place.finish(begin(place, 0, (program, address, str(free_port()), '200', '64')))
    if '200 connections, 64 at a time' not in said:
        raise Failed('no result: ' + last_line(said), said)
    return '200 connections'


def random_file(place, name, megabytes):
    path = os.path.join(place.place, name)
    with open(path, 'wb') as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
    os.chmod(path, 0o666)
    return path


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).digest()


def copy_compared(place, make, megabytes):
    sent, received = random_file(place, 'sent', megabytes), os.path.join(place.place, 'received')
    try:
        make(sent, received).run(place)
        if digest(sent) != digest(received):
            raise Failed('the copy differs')
    finally:
        for path in sent, received:
            if os.path.exists(path):
                os.unlink(path)
    return '%d MB compared' % megabytes


def rcopy(place, address):
    port = free_port()
    return copy_compared(place, lambda sent, received: Pair(
        ('rcopy', '-p', str(port)), ('rcopy', sent, '%s:%s' % (address, received), '-p', str(port)), port,
        ends=False), 20)


def preloaded(place, address):
    port = free_port()
    program = os.path.join(place.place, 'programs_tcp')
    subprocess.run(['cc', '-O1', os.path.join(HERE, 'programs_tcp.c'), '-o', program], check=True)
    words = 'env', 'LD_PRELOAD=' + PRELOADED, program
    return copy_compared(place, lambda sent, received: Pair(
        (*words, 'receive', received, address, str(port)),
        (*words, 'send', sent, address, str(port)), port), MEGABYTES)


def timed(make):
    def run(place):
        begun = time.monotonic()
        pair = make(place)
        shown = pair.run(place) if isinstance(pair, Pair) else pair
        return '%s%.1f s' % (shown + ', ' if shown else '', time.monotonic() - begun)
    return run


def gid_of(address):
    return address if ':' in address else '::ffff:' + address


def af_ib_cases(gid):
    """Addresses of family AF_IB: the GID of an address, and a service ID."""
    yield 'ucmatose AF_IB', lambda p: ucmatose(gid_of(p.addresses[gid][0]), *AF_IB)
    yield 'ucmatose AF_IB 50 -m', lambda p: ucmatose(gid_of(p.addresses[gid][0]), *AF_IB, '-c', '50', '-m')
    yield 'ucmatose AF_IB -P ib', lambda p: ucmatose(gid_of(p.addresses[gid][0]), *AF_IB, '-P', 'ib')
    yield 'udaddy AF_IB', lambda p: udaddy(gid_of(p.addresses[gid][0]), *AF_IB)
    yield 'mckey AF_IB', lambda p: mckey(p.addresses[gid], gid_of(GROUPS[gid]), '-M')
    yield 'rstream AF_IB', lambda p: stream('rstream', gid_of(p.addresses[gid][0]), (*AF_IB, '-T', 'v'))
    yield 'riostream AF_IB', lambda p: stream('riostream', gid_of(p.addresses[gid][0]), (*AF_IB, '-T', 'v'))


def address_cases(gid):
    yield 'rping', lambda p: rping(p.addresses[gid][0], False)
    yield 'rping -P', lambda p: rping(p.addresses[gid][0], True)
    yield 'ucmatose', lambda p: ucmatose(p.addresses[gid][0])
    yield 'ucmatose 50', lambda p: ucmatose(p.addresses[gid][0], '-c', '50')
    yield 'ucmatose 50 migrated', lambda p: ucmatose(p.addresses[gid][0], '-c', '50', '-m')
    yield 'udaddy', lambda p: udaddy(p.addresses[gid][0])
    yield 'mckey', lambda p: mckey(p.addresses[gid], GROUPS[gid])
    yield 'cmtime 1000', lambda p: cmtime(p.addresses[gid][0], 1000)
    yield 'rdma_client', lambda p: simple('rdma_server', 'rdma_client', p.addresses[gid][0],
                                          bind=('-s', p.addresses[gid][0]))
    if gid == 'IPv4':
        yield 'rdma_xclient', lambda p: simple('rdma_xserver', 'rdma_xclient', p.addresses[gid][0])
        yield 'rdma_xclient XRC', lambda p: simple('rdma_xserver', 'rdma_xclient', p.addresses[gid][0],
                                                   '-c', 'x')
    yield 'rstream', lambda p: stream('rstream', p.addresses[gid][0], ('-T', 'v'))
    yield 'rstream resolve', lambda p: stream('rstream', p.addresses[gid][0], ('-T', 'r', '-T', 'v'))
    yield 'rstream nonblocking', lambda p: stream('rstream', p.addresses[gid][0], ('-T', 'n', '-T', 'v'))
    yield 'riostream', lambda p: stream('riostream', p.addresses[gid][0], ('-T', 'v'))
    if gid == 'IPv4':  # perftest 4.5 takes addresses of no other family
        for program in 'ib_write_bw', 'ib_read_lat', 'ib_send_bw':
            for option in '-R', '-z':
                yield '%s %s' % (program, option), lambda p, a=(program, option): perftest(
                    p, a[0], p.addresses['IPv4'][0], a[1])
    yield 'librspreload', lambda p: preloaded(p, p.addresses[gid][0])
    yield from af_ib_cases(gid)


IPV4_ALONE = (
    ('cm_storm 64 at a time', lambda p: storm(p, p.addresses['IPv4'][0])),
    ('rcopy', lambda p: rcopy(p, p.addresses['IPv4'][0])),
)


def needs(name):
    """The program that a case runs."""
    word = name.split()[0]
    return FILES.get(word, word)


def there(name):
    return os.path.exists(needs(name)) if needs(name).startswith('/') else shutil.which(needs(name))


def named(cases, prefix='librdmacm IPv4 '):
    for name, make in cases:
        yield prefix + name, timed(make), there(name)


def all_cases():
    """(name, function of a place, whether its program is installed)"""
    for gid in GROUPS:
        for name, make in address_cases(gid):
            yield 'librdmacm %s %s' % (gid, name), timed(make), there(name)
    yield from named(IPV4_ALONE)


# ---- programs that look for the address of an interface of the kernel ----

def qperf(place, test, address):
    port = str(free_port())
    return Pair(('qperf', '-lp', port), ('qperf', address, '-lp', port, '-cm', '1', '-t', '1', test), 0,
                r'= +[1-9]', ends=False, ready=NEVER, options=SYSFS)


def pingpong(provider, endpoint, address):
    """libfabric's, up to 1 MiB; the data are checked."""
    port = str(free_port())
    base = 'fi_pingpong', '-p', provider, '-e', endpoint, '-I', '20', '-c'
    return Pair((*base, '-B', port), (*base, '-P', port, address), 0, r'(?m)^1m ', ready=NEVER,
                options=SYSFS)


QPERF = ('rc_lat', 'rc_bw', 'rc_bi_bw', 'rc_rdma_read_lat', 'rc_rdma_read_bw', 'rc_rdma_write_lat', 'rc_rdma_write_bw',
         'rc_rdma_write_poll_lat', 'rc_compare_swap_mr', 'rc_fetch_add_mr')

def fabric_rma(place, provider, address):
    port, program = free_port(), os.path.join(place.place, 'programs_fabric')
    subprocess.run(['cc', '-O1', os.path.join(HERE, 'programs_fabric.c'), '-o', program, '-lfabric'], check=True)
    words = program, provider, str(port)
    return Pair(words, (*words, address), 0, 'compared', 'compared', ready=NEVER, options=SYSFS)


INTERFACE_CASES = (
    *(('qperf ' + test, lambda p, t=test: qperf(p, t, p.addresses['IPv4'][0])) for test in QPERF),
    ('fi_pingpong verbs', lambda p: pingpong('verbs', 'msg', p.addresses['IPv4'][0])),
    ('fi_pingpong ofi_rxm', lambda p: pingpong('verbs;ofi_rxm', 'rdm', p.addresses['IPv4'][0])),
    ('fi_rma ofi_rxm', lambda p: fabric_rma(p, 'verbs;ofi_rxm', p.addresses['IPv4'][0])),
    ('rstream getaddrinfo', lambda p: stream('rstream', p.addresses['IPv4'][0], ('-T', 'f'), NEVER)),
)


def interface_cases():
    """The same as all_cases(), for places with an interface of the kernel."""
    for name, make in INTERFACE_CASES:
        yield name, timed(make), there(name)


if __name__ == '__main__':
    sys.exit('run tests/interop/programs --filter librdmacm')
