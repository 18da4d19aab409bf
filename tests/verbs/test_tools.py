#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's own verbs programs, unmodified, on two daemons.

test_tools.py SOFTHCAD FOLDER-OF-LIBIBVERBS [unittest arguments]
"""
import math
import re
import os
import select
import shutil

import tools


class Utils(tools.Tools):
    """Package ibverbs-utils."""

    def test_devices(self):
        for d, side in zip(self.daemons, (0, 1)):
            said = self.run_at(side, 'ibv_devices')
            guid = re.search(r'\b%s\s+([0-9a-f]{16})\b' % d.name, said)
            self.assertIsNotNone(guid, said)
            self.assertNotEqual(int(guid.group(1), 16), 0)
        said = self.run_at(0, 'ibv_devices', SOFTHCA_DIRECTORY=self.place, SOFTHCA_DEVICE='')
        for d in self.daemons:
            self.assertIn(d.name, said)
        self.stop()

    def test_devinfo(self):
        said = self.run_at(0, 'ibv_devinfo', '-v')
        values = dict(re.findall(r'^\s*(\w+):\s+(.*)$', said, re.M))
        self.assertEqual(values['hca_id'], self.daemons[0].name)
        self.assertEqual(values['transport'], 'InfiniBand (0)')
        self.assertEqual(values['phys_port_cnt'], '1')
        self.assertIn('PORT_ACTIVE (4)', values['state'])
        self.assertIn('4096', values['active_mtu'])
        self.assertEqual(values['link_layer'], 'Ethernet')
        self.assertIn('::ffff:%s, RoCE v2' % tools.IPS[0], said)
        self.stop()

    def pingpong(self, program, *options, **more):
        said = self.pair(program, '-g', str(tools.GID_IPV4), *options, **more)
        for text in said:
            self.assertRegex(text, r'bytes in [\d.]+ seconds')
        return said

    def test_pingpong(self):
        for program in 'ibv_rc_pingpong', 'ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong':
            self.pingpong(program, '-n', '500')
        self.stop()

    def test_pingpong_options(self):
        """Sleeping on events, checked contents, sizes, the other GID."""
        self.pingpong('ibv_rc_pingpong', '-n', '200', '-e')
        self.pingpong('ibv_ud_pingpong', '-n', '200', '-e')
        self.pingpong('ibv_srq_pingpong', '-n', '200', '-e')
        self.pingpong('ibv_rc_pingpong', '-n', '200', '-c')
        self.pingpong('ibv_rc_pingpong', '-n', '100', '-s', '1')
        self.pingpong('ibv_rc_pingpong', '-n', '50', '-s', '1000000', '-m', '4096')
        self.pair('ibv_rc_pingpong', '-g', '0', '-n', '200')
        self.stop()

    def test_xsrq_pingpong(self):
        for said in self.pair('ibv_xsrq_pingpong', '-g', str(tools.GID_IPV4), '-n', '200'):
            self.assertIn('success', said)
        self.stop()

    def test_asyncwatch(self):
        """It sleeps until the port goes."""
        watch = self.begin(0, 'ibv_asyncwatch').stdout.fileno()
        said = ''

        def hear(words):
            nonlocal said
            while words not in said:
                self.assertNotEqual(select.select([watch], [], [], tools.TIMEOUT_S)[0], [], said)
                part = os.read(watch, 4096).decode()
                self.assertNotEqual(part, '', said)
                said += part

        hear('async event FD')
        self.assertEqual(self.daemons[1].stop(), 0)
        self.daemons[0].wait_log('link down')
        hear('IBV_EVENT_PORT_ERR')


class Measured(tools.Tools):
    """Package perftest."""

    def measure(self, program, *options):
        said = self.pair(program, '-F', '-x', str(tools.GID_IPV4), *options)
        rows = tools.measured_rows(said[1])
        self.assertTrue(rows, said[1])
        for row in rows:
            self.assertFalse(tools.result_of_0(row), said[1])
        return said[1]


class Perftest(Measured):

    def test_bandwidth(self):
        for program in 'ib_write_bw', 'ib_read_bw', 'ib_send_bw', 'ib_atomic_bw':
            self.measure(program, '-n', '500')
        self.stop()

    def test_latency(self):
        for program in 'ib_write_lat', 'ib_read_lat', 'ib_send_lat', 'ib_atomic_lat':
            self.measure(program, '-n', '200')
        self.stop()

    def test_services(self):
        self.measure('ib_write_bw', '-n', '500', '-c', 'UC')
        self.measure('ib_send_bw', '-n', '500', '-c', 'UC')
        self.measure('ib_send_lat', '-n', '200', '-c', 'UD')
        self.measure('ib_send_bw', '-n', '500', '-e')
        self.measure('ib_send_bw', '-n', '500', '--use-srq', '-q', '4')
        self.measure('ib_write_bw', '-n', '500', '-b', '-l', '4')
        self.stop()

    def test_xrc(self):
        for program in 'ib_write_bw', 'ib_read_bw', 'ib_send_bw', 'ib_atomic_bw':
            self.measure(program, '-n', '200', '-c', 'XRC')
        self.stop()


class Known(Measured):
    """perftest posts inline and by ibv_wr_* only on devices whose vendor and part are in its table."""
    hca = {'vendor_id': '0x2c9', 'vendor_part_id': 4119}

    def test_wr_api(self):
        self.tool('ib_write_bw')
        with open(shutil.which('ib_write_bw'), 'rb') as file:
            if b'mlx5dv_query_device' in file.read():
                self.skipTest('this perftest makes QPs of these devices by calls of their provider')
        for program, options in (('ib_write_bw', ()), ('ib_read_bw', ()), ('ib_send_bw', ()),
                                 ('ib_send_bw', ('-c', 'UD')), ('ib_write_bw', ('-l', '4')),
                                 ('ib_write_lat', ('-I', '60', '-s', '32')),
                                 ('ib_send_lat', ('-c', 'UD', '-I', '60', '-s', '32'))):
            before = self.inline()
            said = self.measure(program, '-n', '300', *options)
            self.assertRegex(said, r'ibv_wr\* API +: ON', said)
            least, most = (300, math.inf) if '-I' in options else (0, 0)
            self.assertTrue(least <= self.inline() - before <= most, (program, options))
        self.stop()

    def inline(self):
        """Requests with inline data that the client's daemon has seen."""
        return self.daemons[1].ask('/softhca/hca/counters')['sq_inline']


if __name__ == '__main__':
    tools.main()
