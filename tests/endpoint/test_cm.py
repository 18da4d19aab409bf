#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Connection management of two daemons joined by memif: connections by address and port, their lists in
softhca-ctl, refusals, programs and daemons that die, floods.

test_cm.py SOFTHCAD SOFTHCA-CTL PROGRAM [unittest arguments]
"""
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest

from daemon import Daemon, ctl, die_with_parent, ended, folder

BINARY, CTL, TALK = [os.path.abspath(word) for word in sys.argv[1:4]]
ADDRESSES = [['10.67.0.1/24', '2001:db8:67::1/64'], ['10.67.0.2/24', '2001:db8:67::2/64']]
IPS = [[word.split('/')[0] for word in side] for side in ADDRESSES]
TIMEOUT_S = 240  # seconds, on a busy machine
NO_SUCH_SERVICE = 8  # reason of a REJ


class Talk:
    """A program, whose lines are read by a thread."""

    def __init__(self, daemon, *words):
        self.lines, self.said = queue.Queue(), []
        self.process = subprocess.Popen([TALK, daemon.socket] + [str(word) for word in words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, encoding='utf-8',
                                        preexec_fn=die_with_parent)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def hears(self, words, timeout_s=TIMEOUT_S):
        """The next line that begins with the words."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError('no "%s" of %s, but %s' % (words, self.process.args, self.said))
            self.said.append(line)
            if line.startswith(words):
                return line

    def finish(self):
        """Its input ends: it disconnects. The exit status."""
        self.process.stdin.close()
        return ended(self.process)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.reader.join()
        for pipe in self.process.stdin, self.process.stdout:
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class Case(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.daemons = []

    def start(self, *parts):
        wire = 'socket=%s/wire' % self.place
        for side, role in enumerate(('server', 'client')):
            d = Daemon(BINARY, self.place, 'shm%d%s' % (os.getpid(), 'ab'[side]),
                       'net_memif0,role=%s,%s' % (role, wire), ADDRESSES[side],
                       {'port': {'mac': '02:00:00:67:00:0%d' % (1 + side)}}, *parts)
            self.addCleanup(d.close)
            self.daemons.append(d.start())
        for d in self.daemons:
            d.wait_log('link up')

    def talk(self, side, *words):
        t = Talk(self.daemons[side], *words)
        self.addCleanup(t.close)
        return t

    def server(self, side=0, address='0.0.0.0', port=0):
        t = self.talk(side, 'serve', address, port)
        t.port = int(t.hears('listening').split()[1])
        return t

    def connect(self, server, side=1, address=IPS[0][0]):
        t = self.talk(side, 'call', address, server.port)
        t.hears('connected')
        server.hears('got over a connection')
        return t

    def ctl(self, side, command):
        run = ctl(CTL, command, '--json', '--prefix', self.daemons[side].name)
        self.assertEqual(run.returncode, 0, run.stderr)
        answer = json.loads(run.stdout)
        return (answer[0] if isinstance(answer, list) else answer)[command]

    def counter(self, side, name):
        return self.ctl(side, 'counters')[name]

    def until(self, true, what):
        end = time.monotonic() + TIMEOUT_S
        while not true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def nothing_left(self, side):
        """No ids; connections only until their TIMEWAIT is over."""
        self.until(lambda: not [row for row in self.ctl(side, 'cm') if row['id'] != 0],
                   lambda: self.ctl(side, 'cm'))


class Connections(Case):
    def setUp(self):
        super().setUp()
        self.start()

    def test_both_families(self):
        """A connection of each address family, in both directions, and on one daemon."""
        for family, everywhere in enumerate(('0.0.0.0', '::')):
            for side in 0, 1:
                server = self.server(side, everywhere)
                for other in 0, 1:
                    client = self.connect(server, other, IPS[side][family])
                    self.assertEqual(client.finish(), 0)
                    client.hears('DISCONNECTED 0')
                    server.hears('DISCONNECTED 0')
                self.assertEqual(server.finish(), 0)
        for side in 0, 1:
            self.nothing_left(side)
            self.assertGreater(self.counter(side, 'cm_mads_sent'), 0)
            self.assertEqual(self.counter(side, 'cm_mads_bad'), 0)

    def test_seen(self):
        """Lines of softhca-ctl cm for listeners and connections."""
        server = self.server()
        listener, = self.ctl(0, 'cm')
        self.assertEqual((listener['state'], listener['source'], listener['source_port']),
                         ('LISTENING', '0.0.0.0', server.port))
        client = self.connect(server)
        here, = self.ctl(1, 'cm')
        there, = [row for row in self.ctl(0, 'cm') if row['state'] != 'LISTENING']
        for row in here, there:
            self.assertEqual((row['state'], row['space']), ('ESTABLISHED', 'TCP'))
            self.assertEqual(row['service_id'], '0x%016x' % (0x0106 << 16 | server.port))
        self.assertEqual((here['source'], here['destination'], here['destination_port']),
                         (IPS[1][0], IPS[0][0], server.port))
        self.assertEqual((there['source'], there['destination']), (IPS[0][0], IPS[1][0]))
        self.assertEqual((here['local_qpn'], here['remote_qpn']),
                         (there['remote_qpn'], there['local_qpn']))
        self.assertEqual((here['local_comm_id'], here['remote_comm_id']),
                         (there['remote_comm_id'], there['local_comm_id']))
        table = ctl(CTL, 'cm', '--prefix', self.daemons[1].name).stdout
        self.assertIn('%s:%d' % (IPS[0][0], server.port), table)
        self.assertEqual(client.finish(), 0)

    def test_refused(self):
        """No listener; a port that is taken; an address of another host."""
        client = self.talk(1, 'call', IPS[0][0], 7)
        client.hears('REJECTED %d' % NO_SUCH_SERVICE)
        server = self.server()
        self.assertIn('bind -98', self.talk(0, 'serve', '0.0.0.0', server.port).hears('bind'))
        self.assertIn('bind -99', self.talk(0, 'serve', IPS[1][0], 7).hears('bind'))
        nowhere = self.talk(1, 'call', '10.67.0.99', 7)
        nowhere.hears('ADDR_ERROR')
        self.doctor(0, '0.0.0.0:%d: another program has the address' % server.port,
                    '%s:7: is no address of this HCA' % IPS[1][0])
        self.doctor(1, '10.67.0.99 (its next hop does not answer): could not be reached')

    def doctor(self, side, *words):
        run = ctl(CTL, 'doctor', '--prefix', self.daemons[side].name)
        for each in words:
            self.assertIn(each, run.stdout)

    def test_flood(self):
        """Requests of one address by the ten thousand: a connection of it stays, and others of
        another address begin meanwhile."""
        server = self.server()
        stays = self.connect(server)
        flood = self.talk(1, 'flood', IPS[0][0], 80000)
        for _ in range(3):
            client = self.connect(server, 0)
            self.assertEqual(client.finish(), 0)
        flood.hears('flooded')
        counters = self.ctl(0, 'counters')
        self.assertGreater(counters['gsi_no_receive'] + counters['cm_mads_received'], 10000)
        self.assertEqual(stays.finish(), 0)
        stays.hears('DISCONNECTED 0')


class Deaths(Case):
    """Each end of a connection gets an event when the other one ends."""

    def setUp(self):
        super().setUp()
        self.start()

    def test_programs(self):
        server = self.server()
        for _ in range(3):
            self.connect(server).kill()
            server.hears('DISCONNECTED 0')
        client = self.connect(server)
        server.kill()
        client.hears('DISCONNECTED 0')
        for side in 0, 1:
            client.close()
            self.nothing_left(side)
        again = self.server(port=server.port)  # the port is free
        self.assertEqual(self.connect(again).finish(), 0)

    def test_daemon_stops(self):
        """It tells the peers before its port closes; its own programs see the device go."""
        server = self.server()
        client = self.connect(server)
        self.daemons[0].stop(signal.SIGTERM)
        client.hears('DISCONNECTED 0')


    def test_daemon_killed(self):
        """Its programs see the device go at once; a new daemon has no state of the old one."""
        server = self.server()
        self.connect(server)
        self.daemons[0].stop(signal.SIGKILL)
        server.hears('DEVICE_REMOVAL')
        self.daemons[0].start().wait_log('link up', count=2)
        self.assertEqual(self.ctl(0, 'cm'), [])
        again = self.server(port=server.port)
        self.assertEqual(self.connect(again).finish(), 0)


class Off(Case):
    def test_off(self):
        """[cm] enabled = no: an error at once, and no answer to peers."""
        self.start({'cm': {'enabled': 'no'}})
        t = self.talk(0, 'serve', '0.0.0.0', 7)
        self.assertIn('no connection manager', t.hears('failed'))
        self.assertEqual(self.ctl(0, 'cm'), [])
        self.assertNotIn('cm_mads_sent', self.ctl(0, 'counters'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
