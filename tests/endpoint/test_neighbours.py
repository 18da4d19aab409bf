#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Configured neighbours (`neighbour = IP MAC`) whose addresses another host on the segment claims: frames to
them, or through them, keep the configured MAC address.

test_neighbours.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import os
import signal
import subprocess
import sys
import unittest

from daemon import Daemon, Namespaces, READY_S, Skip, ended, folder, free_port

BINARY, PERF = [os.path.abspath(word) for word in sys.argv[1:3]]
CLAIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'claim.py')
MACS = ('02:00:00:66:00:01', '02:00:00:66:00:02')
LIAR = '02:00:00:66:99:99'
OWN = ('10.66.0.1', '2001:db8:66::1')


class Static(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        try:
            self.spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(self.spaces.close)
        for side, name in enumerate(self.spaces.names):
            self.spaces.run(name, 'ip', 'link', 'set', 'wire', 'address', MACS[side])
            self.spaces.run(name, 'ip', 'addr', 'add', '10.99.0.%d/24' % (side + 1), 'dev', 'wire')

    def daemon(self, side, addresses):
        d = Daemon(BINARY, self.place, 'shn%d%s' % (os.getpid(), 'ab'[side]), 'net_af_packet0,iface=wire',
                   addresses.pop('address'), {'port': {'mac': MACS[side]}, 'addresses': addresses},
                   prefix=self.spaces.prefix(side))
        self.addCleanup(d.close)
        return d.start()

    def claimant(self, claimed):
        """In the other end's namespace, which sees every frame of the segment."""
        process = subprocess.Popen(list(self.spaces.prefix(1)) + [
            sys.executable, CLAIM, MACS[0], *OWN, LIAR, MACS[1], *claimed],
                                   stdout=subprocess.PIPE, encoding='utf-8')
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), 'begins\n')
        return process

    def perf(self, d, side, *words):
        return subprocess.Popen(list(self.spaces.prefix(side)) + [PERF, '--device', d.socket, *words],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')

    def traffic(self, daemons, claimed):
        """The first end, which is lied to, sends the data."""
        port = free_port()
        server = self.perf(daemons[0], 0, '--server', str(port), '--timeout', '20')
        self.addCleanup(server.stdout.close)
        self.addCleanup(ended, server)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        while 'serves on TCP port' not in (line := server.stdout.readline()):
            self.assertNotEqual(line, '')
        claimant = self.claimant(claimed)
        for gid in '1', '2', '3', '4':
            client = self.perf(daemons[1], 1, '--client', '10.99.0.1:%d' % port, '--op', 'read', '--size',
                               '4096', '--duration', '0.25', '--verify', '--gid-index', gid,
                               '--ack-timeout', '17')
            self.addCleanup(client.kill)
            out = client.communicate(timeout=READY_S)[0]
            self.assertEqual(client.returncode, 0, '%s\n%s' % (out, daemons[0].text()))
            self.assertIn(' verified', out)
        claimant.terminate()
        sent, right, astray = map(int, claimant.communicate(timeout=READY_S)[0].split())
        print('%d claims, %d frames of RoCE to the owner, %d to the claimant' % (sent, right, astray))
        self.assertGreater(sent, 8)
        self.assertGreater(right, 0)
        self.assertEqual(astray, 0)

    def test_peers_and_routers(self):
        """To peers of the prefix, and through routers for whose addresses only the claimant answers."""
        peers, routers = ['10.66.0.2', '2001:db8:66::2'], ['10.66.0.254', '2001:db8:66::fe']
        daemons = [self.daemon(0, {'address': ['10.66.0.1/24', '2001:db8:66::1/64'], 'gateway': routers,
                                   'neighbour': ['%s %s' % (ip, MACS[1]) for ip in peers + routers]}),
                   self.daemon(1, {'address': ['10.66.0.2/24', '2001:db8:66::2/64', '10.78.0.2/24',
                                               '2001:db8:78::2/64']})]
        self.traffic(daemons, peers + routers)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
