#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attacks on the setting up of UB's channels, during imports and a bystander's traffic: both go on.

test_ub_floods.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
test_ub_floods.py SOFTHCAD SOFTHCA-PERF measure [SECONDS [ATTACK...]]    prints a table
"""
import ctypes
import itertools
import os
import re
import statistics
import struct
import subprocess
import sys
import threading
import time
import unittest

from control import Control
from daemon import Daemon, READY_S, Skip, die_with_parent, folder, free_port, ip
from ub_attacker import Attacker, gid4

BINARY, PERF = (sys.argv + ['', ''])[1:3]
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
MACS = ('02:00:00:99:00:01', '02:00:00:99:00:02')
STATION = '02:00:00:99:00:66'
OWN = ['10.99.0.1'] + ['10.99.0.%d' % n for n in range(10, 13)]
PEER = ['10.99.0.%d' % n for n in range(20, 32)]
ROUTER = '10.99.0.66'
UB = {'ub': {'enable': 'yes'}, 'limits': {'log_tps': 8}, 'control': {'mode': '0666'}}
NOBODY = 65534
PER_S = 4  # imports that are tried in a second
WAIT_S = 1.0  # for each


class Client(Control):
    def do(self, op, body=b''):
        answer = self.call(op, body)
        err = struct.unpack_from('=i', answer, 16)[0]
        self.seq += 1
        return err, answer[192:], answer[24:192].split(b'\0')[0].decode()

    def gids(self):
        found = {}
        for index in range(32):
            err, answer, _ = self.do('QUERY_GID', struct.pack('=I', index))
            if err == 0:
                found.setdefault(answer[:16], index)
        return found

    def begin(self, index, peer):
        err, answer, why = self.do('IMPORT_PEER', gid4(peer) + struct.pack('=II', index, 0))
        return err, why, struct.unpack_from('=I', answer)[0] if err == 0 else None

    def is_up(self, number):
        err, answer, why = self.do('QUERY_PEER', struct.pack('=I', number))
        return err, why, err == 0 and struct.unpack_from('=I', answer)[0] == 1

    def end(self, number):
        return self.do('UNIMPORT_PEER', struct.pack('=I', number))[0]

    def imports(self, index, peer, timeout_s=WAIT_S):
        """Seconds, or why not."""
        began = time.monotonic()
        err, why, number = self.begin(index, peer)
        up = False
        while not err and not up and time.monotonic() - began < timeout_s:
            err, why, up = self.is_up(number)
            time.sleep(0 if up else 0.001)
        took = time.monotonic() - began
        if number is not None:
            self.end(number)
        return took if up else why or 'not up in %.0f s' % timeout_s


class World:
    """Two daemons on a veth pair in a network namespace; the attacker is on the interface of the second."""

    def __init__(self, place, number=itertools.count()):
        self.names = ['ubf%d%d%s' % (os.getpid(), next(number), side) for side in 'ab']
        self.place, self.daemons, self.attacker, self.perf = place, [], None, []
        ip('link', 'add', 'wirea', 'type', 'veth', 'peer', 'name', 'wireb')
        for end in ('wirea', 'wireb'):
            subprocess.run(['sysctl', '-qw', 'net.ipv6.conf.%s.disable_ipv6=1' % end], check=True)
            ip('link', 'set', end, 'mtu', '4200', 'up')
        for side, addresses in enumerate((OWN, PEER)):
            d = Daemon(BINARY, place, self.names[side], 'net_af_packet%d,iface=wire%s' % (side, 'ab'[side]),
                       [a + '/24' for a in addresses],
                       {'port': {'mac': MACS[side]}, 'addresses': {'gateway': ROUTER}}, UB)
            self.daemons.append(d)
            d.start()
        self.attacker = Attacker('wireb', STATION, OWN[0], MACS[0])
        self.attacker.arp.add(ROUTER)

    def close(self):
        if self.attacker is not None:
            self.attacker.close()
        for process in self.perf:
            process.kill()
            process.wait()
            process.stdout.close()
        for d in self.daemons:
            d.close()
        ip('link', 'del', 'wirea', check=False)

    def counters(self):
        return self.daemons[0].ask('/softhca/ub/agent')

    def moved(self):
        return [{k: v for k, v in d.ask('/softhca/ub/agent').items() if v} for d in self.daemons]

    def bystander(self, seconds):
        """Ping-pong from the second daemon to the first, over a channel that is made now."""
        port = free_port()
        for words in (['--device', self.daemons[0].socket, '--once', '--timeout', '100', '--server', str(port)],
                      ['--device', self.daemons[1].socket, '--client', '127.0.0.1:%d' % port, '--wire', 'ub',
                       '--test', 'lat', '--size', '64', '--duration', str(seconds), '--timeout', '100']):
            self.perf.append(subprocess.Popen([PERF] + words, stdout=subprocess.PIPE, encoding='utf-8',
                                              stderr=subprocess.STDOUT, preexec_fn=die_with_parent))
        client = Client(self.daemons[0].socket)
        while self.counters()['cm_opened'] == 0:
            assert self.perf[-1].poll() is None, self.perf[-1].stdout.read()
            time.sleep(0.01)
        client.close()

    def bystander_ends(self):
        """The row of its latencies."""
        said = self.perf[-1].communicate(timeout=240)[0]
        assert self.perf[-1].returncode == 0, said
        head = next(line for line in said.splitlines() if 't_typical' in line)
        row = next(line for line in reversed(said.splitlines()) if re.match(r' +\d', line))
        self.perf[-2].communicate(timeout=240)
        self.perf = []
        return dict(zip(head.lstrip('# ').split(), row.split()))


class Repeated(threading.Thread):
    """what(n) for n = 0, 1 ..: at once for n < burst, then at a rate per second."""

    def __init__(self, what, burst, per_s):
        super().__init__(daemon=True)
        self.what, self.burst, self.per_s, self.go, self.n = what, burst, per_s, True, 0
        self.start()

    def run(self):
        for self.n in itertools.count():
            if not self.go:
                return
            self.what(self.n)
            time.sleep(0.002 if self.n < self.burst else 1 / self.per_s)

    def stop(self):
        self.go = False
        self.join()


# ---- attacks: start(world) returns the function that stops it ----

def nothing(_world):
    return lambda: None


def halves_of_one(world):
    """REQs of one address, which receives and never confirms."""
    return Repeated(lambda n: world.attacker.request(ROUTER), 65, 50).stop


def halves_of_many(world):
    """The same of addresses behind the router."""
    return Repeated(lambda n: world.attacker.request('203.0.113.%d' % (1 + n % 250)), 66, 50).stop


def spoofed(world):
    """REQs of thousands of addresses, as fast as Python can, which receive nothing."""
    world.attacker.receives = False
    return Repeated(lambda n: [world.attacker.request('198.18.%d.%d' % (n % 250, k)) for k in range(1, 9)],
                    10**9, 1).stop


def open_of_many(world):
    """66 addresses of one host complete the handshake and refuse to leave."""
    world.attacker.arp |= {'10.99.0.%d' % n for n in range(100, 250)}
    world.attacker.confirms = True
    return Repeated(lambda n: world.attacker.request('10.99.0.%d' % (100 + n % 66)), 66, 5).stop


def greedy_client(world):
    """An ordinary user imports 80 peers behind the router, which do not answer, again and again."""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        client = Client(world.daemons[0].socket)
        index = client.gids()[gid4(OWN[0])]
        numbers = {}
        while True:
            for k in range(80):
                peer = '203.0.113.%d' % (k + 1)
                if k in numbers and client.is_up(numbers[k])[0]:
                    client.end(numbers.pop(k))
                if k not in numbers:
                    err, _, number = client.begin(index, peer)
                    if not err:
                        numbers[k] = number
            time.sleep(0.001)

    def stop():
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return stop


def unknown_stations(world):
    """20 REQs a second of neighbours that do not exist."""
    return Repeated(lambda n: world.attacker.request('10.99.0.%d' % (100 + n % 150)), 66, 20).stop


def forged(world):
    """REQs with the addresses of the peers, from another host."""
    world.attacker.receives = False
    return Repeated(lambda n: world.attacker.request(PEER[n % len(PEER)]), 0, 200).stop


ATTACKS = {f.__name__: f for f in (nothing, spoofed, halves_of_one, halves_of_many, open_of_many, greedy_client,
                                   unknown_stations, forged)}


class Tries:
    """Imports, each of another pair of addresses as long as there are some."""

    def __init__(self, world, side, step=1):
        self.client = Client(world.daemons[side].socket)
        self.gids = self.client.gids()
        pairs = itertools.product(PEER, OWN) if side == 0 else itertools.product(OWN[:1], PEER)
        self.pairs = itertools.cycle(list(pairs)[::step])

    def one(self, timeout_s=WAIT_S):
        peer, own = next(self.pairs)
        return self.client.imports(self.gids[gid4(own)], peer, timeout_s)


def side_of(name):
    """Imports: peers unknown to the first daemon are addresses of the second one."""
    return 1 if name == 'unknown_stations' else 0


def interrupted(world):
    """Imports that take a second because the peer is stopped, while another host forges its REQs."""
    tries, done = Tries(world, 0, -1), []
    stop = forged(world)
    for _ in range(3):
        world.daemons[1].suspend()
        timer = threading.Timer(1, world.daemons[1].resume)
        timer.start()
        done.append(tries.one(READY_S))
        timer.join()
    stop()
    return done


def measure(seconds, names):
    print('%-17s %10s %12s %12s   %s' % ('attack', 'imports/s', 'median ms', 'typ/99% us', 'refusals'))
    for name in names:
        with folder() as place:
            world = World(place)
            try:
                if name in ATTACKS and side_of(name) == 0:
                    world.bystander(seconds + 4)
                stop = ATTACKS[name](world) if name in ATTACKS else None
                time.sleep(2 if stop else 0)
                done, began = [], time.monotonic()
                tries = Tries(world, side_of(name))
                while stop and time.monotonic() - began < seconds:
                    turn = time.monotonic()
                    done.append(tries.one())
                    time.sleep(max(0, turn + 1 / PER_S - time.monotonic()))
                took = time.monotonic() - began
                if stop:
                    stop()
                else:
                    done = interrupted(world)
                    took = len(done)
                good = [x for x in done if isinstance(x, float)]
                row = world.bystander_ends() if world.perf else {}
                print('%-17s %10.2f %12s %12s   %s' % (
                    name, len(good) / took, '%.1f' % (1e3 * statistics.median(good)) if good else '-',
                    '/'.join(row.get(k, '?') for k in ('t_typical[usec]', '99%[usec]')) if row else '-',
                    {w: done.count(w) for w in done if isinstance(w, str)}), flush=True)
                print(' ', {k: v for k, v in world.counters().items() if v and not k.startswith('channels_l')},
                      flush=True)
            finally:
                world.close()


class Floods(unittest.TestCase):
    """One world: leftovers of an attack are present during the next one."""

    @classmethod
    def setUpClass(cls):
        place = folder()
        cls.addClassCleanup(place.__exit__, None, None, None)
        cls.world = World(place.__enter__())
        cls.addClassCleanup(cls.world.close)
        cls.tries = [Tries(cls.world, side) for side in range(2)]

    def setUp(self):
        attacker = self.world.attacker
        attacker.receives, attacker.confirms = True, False

    def works(self, name, counter=None, more=0):
        """During the attack imports of both daemons come up; a bystander's requests complete. The attack goes on until
        the first daemon's counter has grown by more than `more`."""
        self.world.bystander(0.4)
        before = self.world.counters()
        stop = ATTACKS[name](self.world)
        try:
            time.sleep(0.5)
            for _ in range(4):
                for tries in self.tries:
                    self.assertIsInstance(tries.one(READY_S), float, '%s: %s' % (name, self.world.moved()))
            end = time.monotonic() + READY_S
            while counter and self.world.counters()[counter] <= before[counter] + more:
                self.assertLess(time.monotonic(), end, '%s: %s' % (name, self.world.moved()))
                time.sleep(0.05)
        finally:
            stop()
        self.world.bystander_ends()
        time.sleep(0.6)  # channels of this attack are in quarantine

    def test_spoofed(self):
        before = self.world.counters()
        self.works('spoofed', 'cm_sent_RETRY', 100)
        after = self.world.counters()
        self.assertLessEqual(after['channels_half'], before['channels_half'])

    def test_halves_of_one(self):
        self.works('halves_of_one')

    def test_halves_of_many(self):
        self.works('halves_of_many', 'cm_evicted')

    def test_open_of_many(self):
        self.works('open_of_many')
        after = self.world.counters()
        self.assertLessEqual(after['channels_peers'], after['channels_limit_peers'])

    def test_greedy_client(self):
        self.works('greedy_client')

    def test_unknown_stations(self):
        self.works('unknown_stations')

    def test_forged(self):
        self.works('forged')
        for took in interrupted(self.world):
            self.assertIsInstance(took, float)


def main():
    if os.geteuid() != 0:
        raise Skip('network namespaces need root')
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise Skip('no network namespace can be made here')
    ip('link', 'set', 'lo', 'up')
    if sys.argv[3:4] == ['measure']:
        measure(float(sys.argv[4] if len(sys.argv) > 4 else 8), sys.argv[5:] or list(ATTACKS) + ['interrupted'])
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])


if __name__ == '__main__':
    try:
        main()
    except Skip as why:
        print('skipped: %s' % why)
        sys.exit(77)
