#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons that speak UB, joined by memif, and a program of URMA on each.

test_urma_daemons.py TESTS/ENDPOINT SOFTHCAD EXAMPLE URMA-PEERS URMA-BOUND URMA-UNRELIABLE URMA-FORMS
URMA-AGAIN OTHER-PROGRAM...
"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, sys.argv[1])
from daemon import Daemon, folder  # noqa: E402

BINARY, EXAMPLE, PEERS, BOUND, UNRELIABLE, FORMS, AGAIN, *ALONE = [os.path.abspath(path) for path in sys.argv[2:]]
LIMIT_S = 240  # a longer run counts as hung
IPS = ('10.67.0.1', '10.67.0.2')
MACS = ('02:00:00:67:00:01', '02:00:00:67:00:02')


class Daemons(unittest.TestCase):
    def setUp(self):
        self.place = self.enterContext(folder())
        wire = 'socket=%s/wire' % self.place
        self.daemons = []
        for side, role in enumerate(('server', 'client')):
            daemon = Daemon(BINARY, self.place, 'urma%d%s' % (os.getpid(), 'ab'[side]),
                            'net_memif0,role=%s,%s' % (role, wire), [IPS[side] + '/24'],
                            {'ub': {'enable': 'yes', 'timeout_us': 2097152}, 'port': {'mac': MACS[side]},
                             'limits': {'log_tps': 6}, 'pools': {'ub_ops': 1024}})
            self.daemons.append(daemon)
            self.addCleanup(daemon.close)
            daemon.start()
        for daemon in self.daemons:
            daemon.wait_log('link up')

    def device(self, side):
        """Its name in the folder: it has at most 63 bytes, and the folder's path may be longer."""
        return os.path.join('.', os.path.basename(self.daemons[side].socket))

    def begin(self, side, what, place, program=PEERS):
        process = subprocess.Popen([program, self.device(side), what, place], encoding='utf-8',
                                   cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        return process

    def ends_well(self, process):
        said = process.communicate(timeout=LIMIT_S)[0]
        self.assertEqual((process.returncode, said), (0, 'verified\n'))

    def pair(self, server, number, program=PEERS):
        offer = os.path.join(self.place, 'offer%d' % number)
        serving = self.begin(server, 'serve', offer, program)
        deadline = time.monotonic() + LIMIT_S
        while not os.path.exists(offer):
            if serving.poll() is not None:
                self.fail(serving.communicate()[0])
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return serving, offer

    def test_both_ways(self):
        for number, server in enumerate((0, 1, 0)):
            serving, offer = self.pair(server, number)
            self.ends_well(self.begin(1 - server, 'use', offer))
            self.ends_well(serving)
        for daemon in self.daemons:
            self.assertEqual(daemon.stop(), 0)

    def run_pair(self, program):
        for number, server in enumerate((0, 1)):
            serving, offer = self.pair(server, number, program)
            using = self.begin(1 - server, 'use', offer, program)
            # the first failure has the reason; the other one may wait for it without end
            while using.poll() in (None, 0) and serving.poll() in (None, 0) and (
                    using.poll() is None or serving.poll() is None):
                time.sleep(0.02)
            for process in using, serving:
                if process.poll() is not None:
                    self.ends_well(process)

    def test_one_peer(self):
        self.run_pair(BOUND)

    def test_unreliable(self):
        self.run_pair(UNRELIABLE)

    def test_again(self):
        """Jettys of both sides that begin again, under traffic."""
        self.run_pair(AGAIN)

    def test_forms(self):
        """Several SGEs, byte enables, all atomics of all lengths; nothing is sent again."""
        self.run_pair(FORMS)
        for daemon in self.daemons:
            counters = daemon.ask('/softhca/ub/counters')
            self.assertGreater(counters['ub_rx_tp_packets'], 0)
            self.assertEqual({name: n for name, n in counters.items() if n and name.startswith('ub_resent_')}, {})

    def test_alone(self):
        """Programs that talk to themselves by the address of their host."""
        self.assertNotEqual(ALONE, [])
        for program in [UNRELIABLE] + ALONE:
            with self.subTest(program=os.path.basename(program)):
                said = subprocess.run([program, self.device(0)], encoding='utf-8', check=False,
                                      cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
                self.assertEqual((said.returncode, said.stdout), (0, 'verified\n'))

    def test_example(self):
        said = subprocess.run([EXAMPLE, self.device(0)], encoding='utf-8', check=False,
                              cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_S)
        self.assertEqual((said.returncode, said.stdout),
                         (0, 'written over UB, 16 bytes, immediate value 42\n'))

    def test_killed_in_the_middle(self):
        """The peer's daemon is gone, so the import goes on until it is killed; nothing is left."""
        serving, offer = self.pair(0, 0)
        self.daemons[0].suspend()
        using = self.begin(1, 'use', offer)
        deadline = time.monotonic() + LIMIT_S
        while self.daemons[1].ask('/softhca/status')['clients'] < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(0.5)
        self.assertIsNone(using.poll())
        using.kill()
        using.wait(LIMIT_S)
        self.daemons[0].resume()
        # the agent is also a client
        deadline = time.monotonic() + LIMIT_S
        while self.daemons[1].ask('/softhca/status')['clients'] != 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.ends_well(self.begin(1, 'use', offer))
        self.ends_well(serving)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
