#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Multicast by librdmacm: mckey of Debian's rdmacm-utils joins a group at each of two daemons and one sends to the other;
the join and the leave are on the wire as reports of IGMPv3 and MLDv2, by the daemon and by a kernel interface.

test_groups.py SOFTHCAD SOFTHCA-RUN [unittest arguments]
"""
import ipaddress
import os
import shutil
import subprocess
import sys
import time
import unittest

from daemon import Daemon, Namespaces, READY_S, Skip, folder

BINARY, RUN = [os.path.abspath(word) for word in sys.argv[1:3]]
IPS = ('10.66.0.1', '10.66.0.2')
IP6 = ('2001:db8:66::1', '2001:db8:66::2')
GROUP, GROUP6 = '239.1.2.3', 'ff15::203'
LEFT, JOINED = 3, 4  # types of records in reports
MESSAGES = '5'


class Groups(unittest.TestCase):
    def setUp(self):
        if shutil.which('mckey') is None:
            self.skipTest('mckey is not installed (package rdmacm-utils)')
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def start(self, kernel, prefix=()):
        wire = os.path.join(self.place, 'wire')
        self.daemons = []
        for side in range(2):
            d = Daemon(BINARY, self.place, 'shm%d%s' % (os.getpid(), 'ab'[side]),
                       'net_memif0,role=%s,socket=%s' % (('server', 'client')[side], wire),
                       [IPS[side] + '/24', IP6[side] + '/64'],
                       {'kernel': {'interface': kernel if side == 0 else 'none'}}, prefix=prefix)
            self.addCleanup(d.close)
            self.daemons.append(d.start())
        for d in self.daemons:
            d.wait_log('link up')

    def capture(self):
        """At the second daemon: what the first one sends."""
        path = os.path.join(self.place, 'reports.pcapng')
        self.assertNotIn('error', self.daemons[1].ask('/softhca/capture,dir=in,' + path))
        return path

    def mckey(self, side, group, *words):
        address = (IP6 if ':' in group else IPS)[side]
        process = subprocess.Popen([RUN, '--device', self.daemons[side].socket, 'mckey', '-m', group, '-b', address,
                                    '-C', MESSAGES, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   encoding='utf-8')
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_report(self, path, kind, group):
        address = ipaddress.ip_address(group).packed
        record = bytes([kind, 0, 0, 0]) + address
        deadline = time.monotonic() + READY_S
        while True:
            with open(path, 'rb') as file:
                if record in file.read():
                    return
            self.assertLess(time.monotonic(), deadline, 'no report %d of %s' % (kind, group))
            time.sleep(0.05)

    def exchange(self, group):
        path = self.capture()
        receiver = self.mckey(0, group)
        self.wait_report(path, JOINED, group)
        sender = self.mckey(1, group, '-s')
        for process in receiver, sender:
            said = process.communicate(timeout=READY_S)[0]
            self.assertEqual(process.returncode, 0, said)
            self.assertIn('data transfers complete', said)
        self.wait_report(path, LEFT, group)
        self.daemons[1].ask('/softhca/capture,off')

    def test_by_the_daemon(self):
        self.start('none')
        self.exchange(GROUP)
        told = self.daemons[0].ask('/softhca/kernif')
        self.assertEqual((told['groups_joined'], told['groups_left'], told['groups_failed']), (1, 1, 0))

    def test_by_the_daemon_ipv6(self):
        self.start('none')
        self.exchange(GROUP6)

    def test_by_the_kernel(self):
        if not os.access('/dev/net/tun', os.R_OK | os.W_OK):
            self.skipTest('there is no /dev/net/tun')
        try:
            net = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(net.close)
        self.start('tap', net.prefix(0))
        self.exchange(GROUP)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
