#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf over UB between two daemons, also together with RoCE on the same port, and its messages when
the other end has no UB or does not answer.

test_perf_ub.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import itertools
import os
import signal
import struct
import sys
import time
import unittest

import test_perf
from daemon import Daemon, ctl, merged
from test_perf import ADDRESSES, BINARY, LIMIT_S, MACS, PERF, Case

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../wire'))
import ub_check  # noqa: E402

CTL = os.path.join(os.path.dirname(PERF), 'softhca-ctl')
OPERATIONS = ('write', 'read', 'send', 'atomic-fa', 'atomic-cas', 'swap', 'notify')
# The maximum: no process is without a CPU for so long, so a repeated packet was lost.
UB = {'ub': {'enable': 'yes', 'timeout_us': 2097152}, 'limits': {'log_tps': 6}, 'pools': {'ub_ops': 1024}}


def resent(daemon):
    counters = daemon.ask('/softhca/ub/counters')
    assert 'ub_resent_timeout' in counters, counters
    return {name: n for name, n in counters.items() if n and name.startswith('ub_resent_')}


class Pair(Case):
    """Two daemons joined by memif; wires says which of them speak UB."""
    wires = (UB, UB)

    @classmethod
    def daemon(cls, side, device, prefix=()):
        name = 'shu%d%s%s' % (os.getpid(), cls.__name__[0].lower(), 'ab'[side])
        d = Daemon(BINARY, cls.place, name, device, ADDRESSES[side], {'port': {'mac': MACS[side]}},
                   cls.wires[side], prefix=prefix)
        cls.addClassCleanup(d.close)
        cls.daemons.append(d.start())

    def size(self, op):
        return [] if op.startswith('atomic') or op == 'swap' else ['--size', '9001']

    def ctl(self, *words, status=0):
        said = ctl(CTL, *words, '--prefix', self.daemons[1].name)
        self.assertEqual(said.returncode, status, said.stdout + said.stderr)
        return said.stdout + said.stderr

    def capture(self, client, *words):
        """Path, and the output of softhca-ctl: again if one direction was not seen, for lack of a CPU."""
        for number in itertools.count():
            path = os.path.join(self.place, 'frames-%u.pcapng' % number)
            said = self.ctl('capture', path, *words)
            if {sent for sent, _ in frames_of(path)} == {True, False} or client.poll() is not None:
                return path, said

    def nothing_resent(self):
        for d in self.daemons:
            self.assertEqual(resent(d), {}, d.name)


class Memif(Pair):
    def test_operations(self):
        """All of them, over IPv4 and IPv6 in turn, timed and checked; the link is good: nothing is sent again."""
        server = self.server()
        for op, ip in zip(OPERATIONS, itertools.cycle('46')):
            with self.subTest(op=op, ip=ip):
                out = self.good('--wire', 'ub', '--op', op, '--ip', ip, *self.size(op))
                self.assertRegex(out, '# ub %s bw over IPv%s, between daemons' % (op, ip))
                self.assertRegex(out, r'\n \d+ +\d+ .* 0 verified\n')
        self.nothing_resent()
        for d, sent in zip(self.daemons, ('cm_sent_REP', 'cm_sent_REQ')):
            agent = d.ask('/softhca/ub/agent')
            self.assertGreater(agent['cm_opened'], 0)
            self.assertEqual((agent['not_sent'], agent['refused'], agent['unresolved']), (0, 0, 0))
            self.assertIn(sent, agent)
        self.assertNotIn('failed', self.text(server))
        self.clean_end(server)

    def test_options(self):
        server = self.server()
        for words in (('--op', 'send', '--test', 'lat'), ('--op', 'write', '--test', 'lat'),
                      ('--op', 'read', '--test', 'lat'), ('--op', 'send', '--bidir'),
                      ('--op', 'write', '--bidir'), ('--vlan', '7', '--op', 'send'),
                      ('--jettys', '5', '--depth', '8', '--op', 'send', '--size', '64'),
                      ('--mtu', '1024', '--size', '5000'), ('--size', '300000', '--op', 'read'),
                      ('--mtu', '1024', '--op', 'send', '--size', '5000'), ('--mtu', '1024', '--op', 'atomic-cas'),
                      ('--mtu', '1024', '--op', 'read', '--ip', '6', '--size', '5000'),
                      ('--size', '8M', '--depth', '2', '--iters', '4'),
                      ('--inline', '64', '--size', '48', '--op', 'send')):
            with self.subTest(words=words):
                self.good('--wire', 'ub', *words)
        self.assertNotIn('failed', self.text(server))
        self.clean_end(server)

    def test_events_and_jfrs(self):
        server = self.server()
        for words in (('--op', 'send', '--events'), ('--op', 'write', '--events'),
                      ('--op', 'send', '--test', 'lat', '--events'), ('--op', 'send', '--srq'),
                      ('--op', 'send', '--srq', '--events', '--bidir')):
            with self.subTest(words=words):
                self.good('--wire', 'ub', *words)
        out = self.run_client('--wire', 'ub', '--op', 'send', '--srq', '--jettys', '4', '--size', '64',
                              '--iters', '1000')
        self.assertIn(' with a JFR', out)
        self.assertNotIn('failed', self.text(server))
        self.clean_end(server)

    def test_other_words(self):
        """The server's options must be the client's, and both ends report a difference."""
        server = self.server('--wire', 'ub', '--jettys', '2')
        for words, why in ((('--wire', 'roce'), '--wire: the server was started with ub, the client with roce'),
                           (('--wire', 'ub', '--jettys', '3'),
                            '--jettys: the server was started with 2, the client with 3')):
            out = self.run_client('--iters', '10', *words, status=1)
            for text in (out, self.text(server)):
                self.assertIn(why, text)
        self.good('--wire', 'ub', '--jettys', '2')
        self.clean_end(server)
        server = self.server('--wire', 'roce')
        self.assertIn('--wire: the server was started with roce, the client with ub',
                      self.run_client('--iters', '10', '--wire', 'ub', status=1))
        self.clean_end(server)

    def test_both_wires(self):
        """RoCE and UB share the port, at once, and both check every byte."""
        servers, clients = [], []
        for words in (('--wire', 'ub', '--op', 'send'), ('--op', 'write'), ('--wire', 'ub', '--op', 'read'),
                      ('--op', 'send')):
            servers.append(self.server())
            clients.append(self.client('--duration', '0.2', '--size', '9001', '--verify', *words))
        for client in clients:
            out = client.communicate(timeout=LIMIT_S)[0]
            self.assertEqual(client.returncode, 0, out)
            self.assertIn(' verified', out)
        for d in self.daemons:
            self.assertGreater(d.ask('/softhca/hca/counters')['rcvd_pkts'], 0)
            self.assertGreater(d.ask('/softhca/ub/counters')['ub_rx_tp_packets'], 0)
        for server in servers:
            self.clean_end(server)


class Shared(Pair):
    """One channel for all."""
    wires = (merged(UB, {'ub': {'tps': 1}}),) * 2

    def jettys(self):
        """Those of the client's daemon that may send, its agent's not among them."""
        return self.ctl('jettys').count(' JETTY ') - 1

    def channels(self):
        return [tp for tp in self.daemons[1].ask('/softhca/tps').values() if isinstance(tp, dict)]

    def four_programs(self, seconds):
        """The most Jettys that were there at a time while a channel was; Jettys may come before it."""
        servers, clients, most = [], [], 0
        for op in ('write', 'read', 'send', 'atomic-fa'):
            servers.append(self.server(seconds=60))
            clients.append(self.client('--wire', 'ub', '--op', op, '--jettys', '16', '--depth', '8', '--verify',
                                       '--duration', str(seconds), *([] if 'atomic' in op else ['--size', '4096'])))
            self.addCleanup(clients[-1].kill)
        while any(client.poll() is None for client in clients):
            now, channels = self.jettys(), self.channels()
            now = min(now, self.jettys())  # these were there meanwhile
            if now >= 64:
                self.assertLessEqual(len(channels), 1)
            if channels:
                most = max(most, now)
            time.sleep(0.02)
        for client in clients:
            out = client.communicate(timeout=LIMIT_S)[0]
            self.assertEqual(client.returncode, 0, out)
            self.assertIn(' verified', out)
        for server in servers:
            self.clean_end(server)
        return most

    def test_four_programs(self):
        """64 Jettys of four programs at once; they have more time on a machine that is slow."""
        for seconds in (0.4, 2, 8, 25):
            if self.four_programs(seconds) >= 64:
                break
        else:
            self.fail('four programs were not there at once')
        self.nothing_resent()


class Matrix(Pair):
    """Every operation, and nothing is sent again. Each has an IP version and an MTU of its own, or with
    SOFTHCA_WHOLE in the environment all of them in turn."""
    first = 0
    words = ()

    def forms(self, number):
        every = [('4', '1024'), ('6', '4096'), ('4', '4096'), ('6', '1024')]
        return every if 'SOFTHCA_WHOLE' in os.environ else [every[(self.first + number) % 4]]

    def operations(self):
        for number, op in enumerate(OPERATIONS):
            for ip, mtu in self.forms(number):
                with self.subTest(op=op, ip=ip, mtu=mtu):
                    self.assertIn('MTU ' + mtu, self.good('--wire', 'ub', '--op', op, '--ip', ip, '--mtu', mtu,
                                                          *self.words, *self.size(op)))

    def long_messages(self):
        for op in ('write', 'read', 'send'):
            with self.subTest(op=op):
                self.assertIn(' verified', self.run_client('--wire', 'ub', '--op', op, '--size', '8M', '--depth', '2',
                                                           '--iters', '8', '--verify'))

    def all_of_it(self):
        server = self.server()
        self.operations()
        self.long_messages()
        self.nothing_resent()
        self.clean_end(server)


class Txrx(Matrix):
    wires = (merged(UB, {'hca': {'layout': 'txrx'}}),) * 2

    def test_operations(self):
        self.all_of_it()

    def test_capture(self):
        """Frames of a daemon keep the rules of the wire, as far as the disk was fast enough."""
        server = self.server()
        client = self.client('--wire', 'ub', '--op', 'read', '--size', '9001', '--duration', '600', '--depth', '8')
        self.addCleanup(client.kill)
        self.wait_text(server, '# client')
        path, said = self.capture(client, '--seconds', '0.1')
        with open(path, 'rb') as file:
            complaints, frames = ub_check.check(file.read(), window=1024, partial=True)
        self.assertGreater(frames, 0)
        if 'capture lost' not in said:
            self.assertEqual(complaints[:10], [])
        client.send_signal(signal.SIGINT)
        out = client.communicate(timeout=LIMIT_S)[0]
        self.assertEqual(client.returncode, 128 + signal.SIGINT, out)
        self.clean_end(server)


class Full(Matrix):
    wires = (merged(UB, {'hca': {'layout': 'full'}}),) * 2
    first = 1

    def test_operations(self):
        self.all_of_it()


class Veth(Matrix):
    """Over interfaces of the kernel."""
    host = test_perf.Veth.host
    start = classmethod(test_perf.Veth.start.__func__)
    first = 2
    words = ('--depth', '16')

    def test_operations(self):
        server = self.server()
        self.operations()
        self.nothing_resent()
        self.clean_end(server)


def frames_of(path):
    """[(sent, transport header and more)] of the UB frames over IPv4 in a pcapng file."""
    with open(path, 'rb') as file:
        data = file.read()
    at, frames = 0, []
    while at < len(data):
        kind, total = struct.unpack_from('<II', data, at)
        if kind == 6:
            kept, = struct.unpack_from('<I', data, at + 20)
            way, = struct.unpack_from('<I', data, at + 28 + (kept + 3) // 4 * 4 + 4)
            frame = data[at + 28:at + 28 + kept]
            if frame[12:14] == b'\x08\0' and frame[36:38] == (4792).to_bytes(2, 'big'):
                frames.append((way == 2, frame[42:]))
        at += total
    return frames


class Faults(Pair):
    """softhca-ctl on one of the channels between the daemons."""
    wires = (UB,) * 2

    def tps(self):
        return {tp['tpn']: tp for tp in self.daemons[1].ask('/softhca/tps').values()
                if isinstance(tp, dict)}

    def wait(self, what):
        deadline = time.monotonic() + LIMIT_S
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_one_channel(self):
        """Faults and captures by TPN concern this channel; the data is right all the same."""
        server = self.server()
        client = self.client('--wire', 'ub', '--op', 'write', '--size', '20000', '--duration', '60')
        self.addCleanup(client.kill)
        self.wait(lambda: len(self.tps()) == 4 and all(tp['next_psn'] for tp in self.tps().values()))
        tpn = min(self.tps())
        path, _ = self.capture(client, '--tp', hex(tpn), '--seconds', '0.3', '--snaplen', '80')
        seen = frames_of(path)
        self.assertEqual({sent for sent, _ in seen}, {True, False})
        for sent, header in seen:
            at = 2 if sent else 5
            self.assertEqual(int.from_bytes(header[at:at + 3], 'big'), tpn)
        self.assertIn('drop=0.02', self.ctl('impair', '--dir', 'both', '--tp', hex(tpn), '--drop', '0.02'))
        self.wait(lambda: all(self.daemons[1].ask('/softhca/impair')[name] > 3
                              for name in ('dropped', 'in_dropped')))
        self.ctl('impair', 'off')

        def resent():
            return {n: tp['resent_time'] + tp['resent_timeout'] for n, tp in self.tps().items()}
        self.wait(lambda: resent()[tpn] > 0)
        self.assertEqual({n for n, count in resent().items() if count}, {tpn})
        client.send_signal(signal.SIGINT)
        out = client.communicate(timeout=LIMIT_S)[0]
        self.assertEqual(client.returncode, 128 + signal.SIGINT, out)
        self.good('--wire', 'ub', '--op', 'write', '--size', '20000')
        wrong = hex(tpn ^ 0x800000)
        for words in (('impair', '--drop', '1', '--tp', wrong), ('capture', path + 'x', '--tp', wrong)):
            self.assertIn('there is no TP %s; there are 4: ' % wrong, self.ctl(*words, status=1))
        self.ctl('impair', '--drop', '1', '--tp', wrong, '--qp', '5', status=2)
        self.clean_end(server)


class Segments(Pair):
    """The client's daemon sends short segments, the server's those of the default."""
    wires = (UB, {**UB, 'ub': {**UB['ub'], 'segment': 4096}})

    def segments(self, side, *words):
        """How many a request of 64 KiB has, of those that this side's device begins."""
        before = self.daemons[side].ask('/softhca/ub/counters')
        self.run_client('--wire', 'ub', '--iters', '1000', '--size', '65536', *words)
        after = self.daemons[side].ask('/softhca/ub/counters')
        self.assertEqual(after['ub_segments_failed'], 0)
        done = [counters['ub_segments_done'] for counters in (before, after)]
        return (done[1] - done[0]) / 1000

    def test_length(self):
        server = self.server()
        self.assertAlmostEqual(self.segments(1, '--op', 'write'), 16, delta=4)
        self.assertAlmostEqual(self.segments(1, '--op', 'read'), 16, delta=4)
        self.clean_end(server)


class OneWire(Pair):
    """The server's daemon speaks RoCE only."""
    wires = ({}, UB)

    def test_no_ub(self):
        server = self.server()
        out = self.run_client('--iters', '10', '--wire', 'ub', status=1)
        self.assertIn('the server: the device does not speak UB', out)
        self.assertIn('[ub] enable = yes', self.text(server))
        self.alive(server)
        self.clean_end(server)


class Silent(Pair):
    """It takes as long as an agent waits for an answer: half a minute."""

    def test_no_answer(self):
        """Messages of the agents are lost: both ends get the reason, with any time limit."""
        server = self.server(seconds=5)
        self.daemons[1].ask('/softhca/impair,drop=1')
        out = self.run_client('--iters', '10', '--wire', 'ub', '--timeout', '5', status=1)
        self.assertIn('the server: no channel to the peer: ', out)
        self.assertRegex(self.text(server), 'no channel to the peer: .*no answer')
        self.daemons[1].ask('/softhca/impair,off')
        self.good('--wire', 'ub', '--op', 'write')
        self.clean_end(server)


class Interrupted(Pair):
    def test_signal(self):
        server = self.server()
        client = self.client('--wire', 'ub', '--duration', '60')
        self.wait_text(server, '# client')
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=LIMIT_S)
        self.good('--wire', 'ub', '--op', 'send')
        self.clean_end(server)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
