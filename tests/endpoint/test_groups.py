#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Multicast by librdmacm: mckey of Debian's rdmacm-utils joins a group at each of two daemons and one sends
to the other; the join and the leave are on the wire as reports of IGMPv3 and MLDv2, by the daemon and by a
kernel interface.

test_groups.py SOFTHCAD SOFTHCA-RUN [unittest arguments]
"""
import ipaddress
import os
import shutil
import subprocess
import sys
import time
import unittest

from daemon import Daemon, Namespaces, READY_S, Skip, folder, ip

BINARY, RUN = [os.path.abspath(word) for word in sys.argv[1:3]]
IPS = ('10.66.0.1', '10.66.0.2')
IP6 = ('2001:db8:66::1', '2001:db8:66::2')
GROUP, GROUP6 = '239.1.2.3', 'ff15::203'
LEFT, JOINED = 3, 4  # types of records in reports
MESSAGES = '5'


class Case(unittest.TestCase):
    def setUp(self):
        if shutil.which('mckey') is None:
            self.skipTest('mckey is not installed (package rdmacm-utils)')
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def daemon(self, side, device, *parts, prefix=()):
        d = Daemon(BINARY, self.place, 'shm%d%s' % (os.getpid(), 'ab'[side]), device,
                   [IPS[side] + '/24', IP6[side] + '/64'], *parts, prefix=prefix)
        self.addCleanup(d.close)
        return d.start()

    def mckey(self, side, group, *words):
        address = (IP6 if ':' in group else IPS)[side]
        process = subprocess.Popen([RUN, '--device', self.daemons[side].socket, 'mckey', '-m', group, '-b', address,
                                    '-C', MESSAGES, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   encoding='utf-8')
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def send_to(self, receiver, group):
        for process in receiver, self.mckey(1, group, '-s'):
            said = process.communicate(timeout=READY_S)[0]
            self.assertEqual(process.returncode, 0, said)
            self.assertIn('data transfers complete', said)


class Groups(Case):
    """The two daemons are joined by memif."""

    def start(self, kernel, prefix=()):
        wire = os.path.join(self.place, 'wire')
        self.daemons = []
        for side in range(2):
            self.daemons.append(self.daemon(
                side, 'net_memif0,role=%s,socket=%s' % (('server', 'client')[side], wire),
                {'kernel': {'interface': kernel if side == 0 else 'none'}}, prefix=prefix))
        for d in self.daemons:
            d.wait_log('link up')

    def capture(self):
        """At the second daemon: frames of the first one."""
        path = os.path.join(self.place, 'reports.pcapng')
        self.assertNotIn('error', self.daemons[1].ask('/softhca/capture,dir=in,' + path))
        return path

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
        self.send_to(receiver, group)
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


class Snooping(Case):
    """A bridge of Linux that snoops and queries each second: groups that are not reported for 3 s are not
    delivered."""

    def command(self, *words):
        return subprocess.run(['ip', 'netns', 'exec', self.space, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding='utf-8', timeout=READY_S, check=True).stdout

    def bridge(self):
        if os.geteuid() != 0 or shutil.which('bridge') is None:
            self.skipTest('needs root and the program bridge (package iproute2)')
        self.space = 'shm%d' % os.getpid()
        if not ip('netns', 'add', self.space, check=False):
            self.skipTest('no network namespace can be made here')
        self.addCleanup(ip, 'netns', 'del', self.space)
        try:
            self.command('ip', 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '1', 'mcast_querier', '1',
                         'mcast_query_interval', '100', 'mcast_query_response_interval', '50',
                         'mcast_membership_interval', '300', 'mcast_startup_query_interval', '100')
        except subprocess.CalledProcessError as error:
            self.skipTest('no bridge that snoops: ' + error.stdout.strip())
        for side in range(2):
            self.command('ip', 'link', 'add', 'port%d' % side, 'type', 'veth', 'peer', 'name', 'host%d' % side)
            self.command('ip', 'link', 'set', 'port%d' % side, 'master', 'br0', 'up')
            self.command('ip', 'link', 'set', 'host%d' % side, 'addrgenmode', 'none', 'up')
        self.command('ip', 'addr', 'add', '10.66.0.250/24', 'dev', 'br0')
        self.command('ip', 'link', 'set', 'br0', 'up')

    def members(self, group):
        """Ports of the bridge."""
        return [line.split()[3] for line in self.command('bridge', 'mdb', 'show').splitlines()
                if ' grp %s ' % group in line]

    def wait_members(self, group, ports):
        deadline = time.monotonic() + READY_S
        while self.members(group) != ports:
            self.assertLess(time.monotonic(), deadline, '%s: %s' % (group, self.command('bridge', 'mdb', 'show')))
            time.sleep(0.1)

    def queries(self):
        return self.daemons[0].ask('/softhca/kernif')['group_queries']

    def test_bridge(self):
        self.bridge()
        self.daemons = [self.daemon(side, 'net_af_packet0,iface=host%d' % side,
                                    {'port': {'mac': '02:00:00:66:00:0%d' % (side + 1)}},
                                    prefix=('ip', 'netns', 'exec', self.space)) for side in range(2)]
        for side in range(2): # the groups in which neighbours ask
            self.wait_members('ff02::1:ff00:%d' % (side + 1), ['port%d' % side])
        receivers = [(self.mckey(0, group), group) for group in (GROUP, GROUP6)]
        for _, group in receivers:
            self.wait_members(group, ['port0'])
        before = self.queries()
        while self.queries() < before + 12: # six of each protocol, one a second
            time.sleep(0.1)
        for receiver, group in receivers:
            self.assertEqual(self.members(group), ['port0'])
            self.send_to(receiver, group)
            self.wait_members(group, [])
        self.assertEqual(self.members('ff02::1:ff00:1'), ['port0'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
