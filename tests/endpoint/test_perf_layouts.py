#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf between two daemons whose stages are on several workers.

test_perf_layouts.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import sys
import unittest

from test_perf import OPERATIONS, Case


class Spread(Case):
    """Stages on several workers, connected by rings: every operation of the services that retransmit,
    and long messages. The link is good and the ack timeout longer than a process waits for its CPU, so a
    retransmission is a packet or a wake-up that was lost inside."""

    def counter(self, name):
        return [d.ask('/softhca/hca/counters')[name] for d in self.daemons]

    def good(self, *words):
        return super().good('--ack-timeout', '20', *words)

    def all_of_it(self, workers):
        for d in self.daemons:
            self.assertEqual(d.ask('/softhca/endpoint')['workers'], workers)
        server = self.server()
        for number, op in enumerate(OPERATIONS['rc']):
            size = [] if op.startswith('atomic') else ['--size', '9001']
            for words in (('--service', 'rc', '--test', 'bw'), ('--service', 'rc', '--test', 'lat'),
                          ('--service', 'xrc')):
                if op == 'atomic-write' and 'xrc' in words:
                    continue
                with self.subTest(op=op, words=words):
                    self.good('--op', op, '--ip', '46'[number % 2], *size, *words)
        for words in (('--op', 'send', '--srq'), ('--op', 'send', '--events'), ('--op', 'read', '--bidir'),
                      ('--op', 'write', '--bidir', '--mtu', '1024'), ('--service', 'ud', '--depth', '16'),
                      ('--qps', '20', '--depth', '8', '--op', 'write')):
            with self.subTest(words=words):
                self.good(*words, '--size', '700' if 'ud' in words else '9001')
        for op in ('write', 'read', 'send'):
            with self.subTest(op=op):
                self.assertIn(' verified', self.run_client('--op', op, '--size', '8M', '--depth', '2', '--iters', '8',
                                                           '--verify', '--ack-timeout', '20'))
        for name in ('again_timeout', 'again_seq_nak', 'again_implied_nak', 'wake_missed'):
            self.assertEqual(self.counter(name), [0, 0], name)
        self.assertNotIn('failed', self.text(server))
        self.clean_end(server)


class Txrx(Spread):
    config = {'hca': {'layout': 'txrx'}}

    def test_operations(self):
        self.all_of_it(2)


class Full(Spread):
    config = {'hca': {'layout': 'full'}}

    def test_operations(self):
        self.all_of_it(9)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], '-v'] + sys.argv[3:])
