#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rest of the traffic of a port: a plain Linux host on the other end of the wire pings, resolves
and talks TCP to the daemon's addresses, with a TAP interface and with the built-in responder.

test_kernel.py SOFTHCAD PEER [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

from daemon import READY_S, SMALL, Daemon, Namespaces, Skip, ended, folder, merged, write_config

BINARY, PEER = [os.path.abspath(word) for word in sys.argv[1:3]]
PERF = os.path.join(os.path.dirname(BINARY), 'softhca-perf')
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
OURS, THEIRS = '10.66.0.1', '10.66.0.2'
OURS6, THEIRS6 = 'fd00:66::1', 'fd00:66::2'
ADDRESSES = [OURS + '/24', OURS6 + '/64']
MEGABYTES = 1

# A veth leaves checksums to hardware: on a wire to DPDK no device computes them.
NO_OFFLOAD = '''
import fcntl, socket, struct, array
s = socket.socket()
value = array.array('B', struct.pack('II', 0x17, 0))
fcntl.ioctl(s, 0x8946, struct.pack('16sP8x', b'wire', value.buffer_info()[0]))
'''

RECEIVE = '''
import hashlib, socket, sys
s = socket.create_server((sys.argv[1], 7000), family=socket.AF_INET6 if ':' in sys.argv[1]
                         else socket.AF_INET)
print('ready', flush=True)
c, h, n = s.accept()[0], hashlib.sha256(), 0
while True:
    b = c.recv(1 << 16)
    if not b:
        break
    h.update(b)
    n += len(b)
print(n, h.hexdigest(), flush=True)
'''

SEND = '''
import hashlib, os, socket, sys
c, h = socket.create_connection((sys.argv[1], 7000), timeout=240), hashlib.sha256()
for i in range(int(sys.argv[2])):
    b = os.urandom(1 << 20)
    h.update(b)
    c.sendall(b)
print(int(sys.argv[2]) << 20, h.hexdigest())
'''

LISTEN = '''
import socket, sys
got = []
for port in (4790, 4791):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((sys.argv[1], port))
    got.append(s)
print('ready', flush=True)
for s, timeout_s in zip(got, (240, 1)): # what is sent to the second one passes the first one's
    s.settimeout(timeout_s)
    try:
        print(s.getsockname()[1], len(s.recv(100)))
    except TimeoutError:
        print(s.getsockname()[1], 'nothing')
'''

TALK = '''
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10):
    for port in (4790, 4791):
        s.sendto(b'x' * 60, (sys.argv[1], port))
    time.sleep(0.05)
'''


class Case(unittest.TestCase):
    def setUp(self):
        for word in ('ping', 'sysctl'):
            if shutil.which(word) is None:
                self.skipTest('the program %s is missing' % word)
        try:
            self.net = Namespaces()
        except Skip as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.net.close)
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.side_a, self.side_b = self.net.names
        # The interface below the port is not to answer for the addresses of the daemon.
        for side in self.net.names:
            for key in ('rp_filter', 'arp_ignore'):
                self.net.run(side, 'sysctl', '-q', '-w', 'net.ipv4.conf.wire.%s=1' % key)

    def plain_host(self):
        """Side b is Linux without us."""
        self.net.run(self.side_b, 'sysctl', '-q', '-w', 'net.ipv6.conf.wire.disable_ipv6=0')
        self.net.run(self.side_b, 'ip', 'addr', 'add', THEIRS + '/24', 'dev', 'wire')
        self.net.run(self.side_b, 'ip', 'addr', 'add', THEIRS6 + '/64', 'dev', 'wire', 'nodad')
        self.net.run(self.side_b, sys.executable, '-c', NO_OFFLOAD)

    def start(self, *parts):
        self.plain_host()
        name = 'shk%d' % os.getpid()
        d = Daemon(BINARY, self.place, name, 'net_af_packet0,iface=wire', ADDRESSES, *parts,
                   prefix=self.net.prefix(0))
        self.addCleanup(d.close)
        return d.start()

    def ping(self, side, address, *words):
        out = self.net.run(side, 'ping', '-q', '-c', '3', '-i', '0.05', '-W', '10', *words,
                           address)
        self.assertNotIn('duplicates', out)

    def counters(self, d):
        return d.ask('/softhca/kernel')

    def background(self, side, program, *words):
        child = subprocess.Popen(self.net.prefix(side) + (sys.executable, '-c', program) + words,
                                 stdout=subprocess.PIPE, encoding='utf-8')
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), 'ready\n')
        return child

    def transfer(self, source, target, address):
        receiver = self.background(target, RECEIVE, address)
        sent = self.net.run(self.net.names[source], sys.executable, '-c', SEND, address,
                            str(MEGABYTES))
        self.assertEqual(receiver.stdout.readline(), sent)
        self.assertTrue(sent.startswith('%d ' % (MEGABYTES << 20)))

    def mac_of(self, side, device):
        return re.search(r'ether ([0-9a-f:]+)', self.net.run(side, 'ip', 'link', 'show', device))[1]


def need_tun(case):
    if not os.access('/dev/net/tun', os.W_OK):
        case.skipTest('there is no /dev/net/tun')


class Responder(Case):
    def test_ping(self):
        d = self.start()
        mac = self.mac_of(self.side_a, 'wire')
        self.ping(self.side_b, OURS)
        self.ping(self.side_b, OURS, '-s', '3000')
        self.ping(self.side_b, OURS6)
        self.ping(self.side_b, OURS6, '-s', '3000')
        for address in (OURS, OURS6):
            self.assertIn(mac, self.net.run(self.side_b, 'ip', 'neigh', 'show', address))
        if shutil.which('arping') is not None:
            out = self.net.run(self.side_b, 'arping', '-I', 'wire', '-c', '2', '-w', '20', OURS)
            self.assertIn(mac.upper(), out)
        counters = self.counters(d)
        self.assertEqual(counters['responder_echo_requests'], 12)
        self.assertEqual(counters['divert_rx_drops'], 0)
        self.assertGreaterEqual(counters['divert_rx_pkts'], 12)
        self.assertGreaterEqual(counters['divert_tx_pkts'], counters['kernel_from_kernel_pkts'])
        self.assertEqual(d.stop(), 0, d.text())

    def test_nobody_else(self):
        """Addresses that are not the daemon's stay silent."""
        self.start()
        self.ping(self.side_b, OURS)
        self.net.run(self.side_b, 'ping', '-q', '-c', '1', '-W', '1', '10.66.0.9', check=False)
        self.assertNotIn('lladdr', self.net.run(self.side_b, 'ip', 'neigh', 'show', '10.66.0.9'))


class Tap(Case):
    def setUp(self):
        super().setUp()
        need_tun(self)

    def tap(self, **keys):
        return self.start({'kernel': dict({'interface': 'tap', 'name': 'hca0'}, **keys)})

    def test_ping(self):
        d = self.tap()
        self.assertEqual(self.mac_of(self.side_a, 'hca0'), self.mac_of(self.side_a, 'wire'))
        for ours, theirs in ((OURS, THEIRS), (OURS6, THEIRS6)):
            self.ping(self.side_b, ours)
            self.ping(self.side_a, theirs)
            self.ping(self.side_a, theirs, '-s', '4000')
        self.assertEqual(d.stop(), 0, d.text())
        self.assertIn('does not exist', self.net.run(self.side_a, 'ip', 'link', 'show', 'hca0',
                                                     check=False))

    def test_tcp(self):
        self.tap()
        self.transfer(1, 0, OURS)
        self.transfer(0, 1, THEIRS)
        self.transfer(1, 0, OURS6)

    def test_roce_port(self):
        """The kernel never sees UDP port 4791, and all of its neighbour's."""
        d = self.tap()
        self.ping(self.side_b, OURS)
        passed = self.counters(d)['kernel_to_kernel_pkts']
        listener = self.background(0, LISTEN, OURS)
        self.net.run(self.side_b, sys.executable, '-c', TALK, OURS)
        self.assertEqual(sorted(listener.stdout.read().split('\n')),
                         ['', '4790 60', '4791 nothing'])
        end = time.monotonic() + READY_S
        while self.counters(d)['kernel_to_kernel_pkts'] < passed + 10 and time.monotonic() < end:
            time.sleep(0.02)
        self.assertGreaterEqual(self.counters(d)['kernel_to_kernel_pkts'], passed + 10)

    def test_adopt(self):
        """Addresses set from outside, before and while the daemon runs."""
        run = self.net.run
        run(self.side_a, 'ip', 'tuntap', 'add', 'dev', 'hca0', 'mode', 'tap')
        run(self.side_a, 'ip', 'addr', 'add', '10.66.0.7/24', 'dev', 'hca0')
        d = self.tap(adopt='yes')
        self.ping(self.side_b, '10.66.0.7')
        run(self.side_a, 'ip', 'addr', 'add', '10.66.0.8/24', 'dev', 'hca0')
        self.ping(self.side_b, '10.66.0.8')
        self.assertEqual(d.stop(), 0, d.text())
        self.assertIn('10.66.0.8', run(self.side_a, 'ip', 'addr', 'show', 'hca0'))

    def test_name_taken(self):
        self.net.run(self.side_a, 'ip', 'tuntap', 'add', 'dev', 'hca0', 'mode', 'tap')
        with self.assertRaisesRegex(AssertionError, 'interface hca0 exists already'):
            self.tap()

    def test_carrier(self):
        """The wire is cut: the interface has no carrier, and has it again."""
        d = self.tap()
        self.ping(self.side_a, THEIRS)
        self.net.run(self.side_b, 'ip', 'link', 'set', 'wire', 'down')
        d.wait_log('link down')
        self.wait_state('NO-CARRIER', True)
        self.net.run(self.side_b, 'ip', 'link', 'set', 'wire', 'up')
        self.wait_state('NO-CARRIER', False)
        self.ping(self.side_a, THEIRS)

    def wait_state(self, word, there):
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if (word in self.net.run(self.side_a, 'ip', 'link', 'show', 'hca0')) == there:
                return
            time.sleep(0.05)
        self.fail('%s is %s' % (word, 'missing' if there else 'still there'))


class Peer:
    """kernel_peer on one side: an endpoint with a TAP interface, and a QP that never rests."""

    def __init__(self, case, side, ours, theirs, addresses):
        name = 'shp%d%s' % (os.getpid(), 'ab'[side])
        config = os.path.join(case.place, name + '.conf')
        write_config(config, merged(
            SMALL, {'hca': {'name': name}, 'port': {'device': 'net_af_packet0,iface=wire'},
                    'addresses': {'address': addresses}, 'control': {'socket': 'none'},
                    'kernel': {'interface': 'tap', 'name': 'hca0'}}))
        self.log = os.path.join(case.place, name + '.log')
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                case.net.prefix(side) + (PEER, config, ours, theirs), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, encoding='utf-8')
        case.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def hear(self, word):
        line = self.process.stdout.readline()
        if not line.startswith(word + ' ') and line != word + '\n':
            with open(self.log, encoding='utf-8', errors='replace') as log:
                raise AssertionError('"%s" instead of "%s":\n%s' % (line, word, log.read()))
        return line.split()[1:]

    def tell(self, *words):
        self.process.stdin.write(' '.join(words) + '\n')
        self.process.stdin.flush()

    def rounds(self):
        self.tell('count')
        return int(self.hear('rounds')[0])


class Beside(Case):
    """RC traffic together with all other traffic over the same addresses of the same ports."""

    def setUp(self):
        super().setUp()
        need_tun(self)

    def connect(self, ours, theirs):
        peers = [Peer(self, 0, ours, theirs, [OURS + '/24', OURS6 + '/64']),
                 Peer(self, 1, theirs, ours, [THEIRS + '/24', THEIRS6 + '/64'])]
        here = [peer.hear('here') for peer in peers]
        for peer, there in zip(peers, reversed(here)):
            peer.tell('there', *there)
        for peer in peers:
            peer.hear('connected')
        for peer in peers:
            peer.tell('go')
        return peers

    def progress(self, peers, before):
        """Every side has gone on since."""
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            now = [peer.rounds() for peer in peers]
            if all(n > b for n, b in zip(now, before)):
                return now
            time.sleep(0.05)
        self.fail('no progress: %r, then %r' % (before, now))

    def finish(self, peers):
        for peer in peers:
            peer.tell('stop')
        for peer in peers:
            rounds, _, errors = peer.hear('done')
            self.assertGreater(int(rounds), 10)
            self.assertEqual(errors, '0')
        for peer in peers:
            peer.tell('end')
        for peer in peers:
            self.assertEqual(ended(peer.process), 0)


class Together(Beside):
    """Ping and TCP."""

    def everything(self, ours, theirs):
        peers = self.connect(ours, theirs)
        rounds = self.progress(peers, [0, 0])
        self.transfer(1, 0, ours)
        rounds = self.progress(peers, rounds)
        self.transfer(0, 1, theirs)
        rounds = self.progress(peers, rounds)
        self.ping(self.side_a, theirs)
        self.ping(self.side_b, ours, '-s', '3000')
        self.progress(peers, rounds)
        self.finish(peers)

    def test_ipv4(self):
        self.everything(OURS, THEIRS)

    def test_ipv6(self):
        self.everything(OURS6, THEIRS6)


class Moves(Beside):
    def test_peer_moves(self):
        """The other side gets another MAC address in the middle of the traffic."""
        peers = self.connect(OURS, THEIRS)
        rounds = self.progress(peers, [0, 0])
        self.net.run(self.side_b, 'sysctl', '-q', '-w', 'net.ipv4.conf.hca0.arp_notify=1')
        time.sleep(1.1)  # the kernel takes no change within a second
        self.net.run(self.side_b, 'ip', 'link', 'set', 'hca0', 'address', '02:66:00:00:00:99')
        self.ping(self.side_b, OURS)
        rounds = self.progress(peers, [peer.rounds() for peer in peers])
        self.assertIn('02:66:00:00:00:99',
                      self.net.run(self.side_a, 'ip', 'neigh', 'show', THEIRS))
        self.progress(peers, rounds)
        self.finish(peers)


class TwoHosts(Case):
    """config/examples/two-hosts.conf on each side, as it is but for interface, names and memory: the programs
    find each other by the address of the daemon."""

    def host(self, side):
        address = '192.0.2.%d' % (side + 1)
        d = Daemon(BINARY, self.place, 'sht%d%d' % (os.getpid(), side), '', [], prefix=self.net.prefix(side))
        with open(os.path.join(ROOT, 'config/examples/two-hosts.conf'), encoding='utf-8') as file:
            text = file.read()
        for was, now in (('iface=eth1', 'iface=wire'), ('address = 192.0.2.1/24', 'address = %s/24' % address)):
            self.assertEqual(text.count('\n' + was) + text.count(',' + was), 1, was)
            text = text.replace(was, now)
        with open(d.config, 'w', encoding='utf-8') as file:
            file.write(text + '[hca]\nname = %s\n[control]\nsocket = %s\n[memory]\nhugepages = never\n'
                       'size_mb = 256\n' % (d.name, d.socket))
        self.addCleanup(d.close)
        return d.start()

    def test_perf(self):
        first, second = self.host(0), self.host(1)
        for d in first, second:
            d.wait_log('link up')
        server = subprocess.Popen(self.net.prefix(0) + (PERF, '--device', first.socket, '--once', '--server'),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        said = self.net.run(self.side_b, PERF, '--device', second.socket, '--client', '192.0.2.1', '--op', 'write',
                            '--iters', '3200', '--verify')
        self.assertIn('verified', said)
        self.assertEqual(ended(server), 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
