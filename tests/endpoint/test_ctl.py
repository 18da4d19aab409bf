#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-ctl against a daemon and against a measuring softhca-perf: what it says is what is there.

test_ctl.py SOFTHCA-CTL SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from daemon import Daemon, folder

CTL, DAEMON, PERF = [os.path.abspath(word) for word in sys.argv[1:4]]
PATIENCE = 60
VIEWS = ('status', 'qps', 'mrs', 'gids', 'clients', 'stages', 'usage')


def ctl(*words, env=None, timeout=PATIENCE):
    return subprocess.run([CTL] + [str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding='utf-8', timeout=timeout, check=False,
                          env=dict(os.environ, **(env or {})))


class Case(unittest.TestCase):
    def good(self, *words, **options):
        run = ctl(*words, **options)
        self.assertEqual((run.returncode, run.stderr), (0, ''), run.stdout)
        return run.stdout

    def json(self, *words, **options):
        return json.loads(self.good(*words, '--json', **options))

    def bad(self, status, text, *words, **options):
        run = ctl(*words, **options)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(text, run.stderr)


class CommandLine(Case):
    def test_usage(self):
        for name in VIEWS + ('counters', 'top'):
            self.assertIn('  %s' % name, self.good('--help'))
        self.assertIn('softhca-ctl', self.good('--version'))
        self.bad(2, 'no command "nonsense"', 'nonsense')
        self.bad(2, 'unexpected argument', 'qps', 'word')
        self.bad(2, 'unrecognized option', 'qps', '--nonsense')
        self.bad(2, '--interval', 'top', '--interval', 'x')
        self.bad(2, '--interval', 'counters', '--interval', '-1')

    def test_nobody(self):
        with tempfile.TemporaryDirectory() as empty:
            for name in VIEWS:
                self.bad(1, 'no HCA was found', name, '--prefix', 'nosuch',
                         env={'XDG_RUNTIME_DIR': empty})
            self.bad(1, 'no process', 'counters', '--prefix', 'nosuch')


class OfDaemon(Case):
    """One for all: it only reads."""

    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.name = 'shc%dd' % os.getpid()
        cls.daemon = Daemon(DAEMON, cls.place, cls.name, 'net_null0',
                            ['10.66.0.1/24', '2001:db8::1/64'])
        cls.addClassCleanup(cls.daemon.close)
        cls.daemon.start()

    def about(self, *words):
        return self.json(*words, '--prefix', self.name)

    def test_status(self):
        status, = self.about('status')
        self.assertEqual((status['process'], status['hca']), (self.name, self.name))
        status = status['status']
        self.assertEqual(status['pid'], self.daemon.process.pid)
        self.assertEqual(status['health'], 'well')
        self.assertEqual(status['device'], 'net_null0')
        self.assertEqual(status['socket'], self.daemon.socket)
        self.assertEqual(status['active_mtu'], 4096)
        self.assertIn('device', self.good('status', '--prefix', self.name))

    def test_gids(self):
        gids, = self.about('gids')
        self.assertIn('10.66.0.1', [gid['ip'] for gid in gids['gids']])
        self.assertIn('2001:db8::1', [gid['ip'] for gid in gids['gids']])
        self.assertIn('10.66.0.1', self.good('gids', '--prefix', self.name))

    def test_empty(self):
        for name in ('qps', 'clients'):
            answer, = self.about(name)
            self.assertEqual(answer[name], [])

    def test_stages(self):
        answer, = self.about('stages')
        self.assertIn('encap', [stage['stage'] for stage in answer['stages']])

    def test_counters(self):
        counters = self.about('counters')
        for name in ('sent_pkts', 'port_rcv_missed', 'ipc_clients_accepted', 'fault_frames'):
            self.assertIn(name, counters)
        for value in self.about('counters', '--nonzero').values():
            self.assertNotEqual(value, 0)

    def test_top(self):
        top = self.about('top', '--once', '--interval', '0.2')
        self.assertGreaterEqual(top['seconds'], 0.2)
        self.assertEqual(top['qps'], [])
        polls = {stage['stage']: stage['polls_per_s'] for stage in top['stages']}
        self.assertGreater(polls['decap'], 0)
        # measured while it looked only
        answer, = self.about('stages')
        self.assertEqual({stage['polls'] for stage in answer['stages']}, {0})


class OfPerf(Case):
    """Embedded HCAs with traffic; two of them in one process."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.env = {'XDG_RUNTIME_DIR': place.name}
        self.process = subprocess.Popen(
            [PERF, '--telemetry', '--no-huge', '--qps', '24', '--duration', '600'],
            env=dict(os.environ, **self.env), stdout=subprocess.DEVNULL)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not self.busy():
            time.sleep(0.1)

    def busy(self):
        run = ctl('qps', '--json', '--prefix', 'softhca', env=self.env)
        return run.returncode == 0 and any(
            len(hca['qps']) == 24 and all(qp['tx_packets'] for qp in hca['qps'])
            for hca in json.loads(run.stdout))

    def about(self, *words):
        return self.json(*words, '--prefix', 'softhca', env=self.env)

    def test_all(self):
        a, b = self.about('qps')
        self.assertEqual(len(a['qps']), 24)
        self.assertEqual({qp['qpn'] for qp in a['qps']}, {qp['remote_qpn'] for qp in b['qps']})
        self.assertEqual({qp['state'] for qp in a['qps'] + b['qps']}, {'RTS'})
        mrs, _ = self.about('mrs')
        keys = [mr['key'] for mr in mrs['mrs']]
        self.assertGreater(len(keys), 48)  # more than one answer holds
        self.assertEqual(len(set(keys)), len(keys))
        self.bad(1, 'choose one with --hca', 'counters', '--prefix', 'softhca', env=self.env)
        top = self.about('top', '--once', '--hca', a['hca'], '--qps', '5')
        self.assertGreater(top['port']['port_xmit_data'], 0)
        self.assertEqual(len(top['qps']), 5)
        rates = [qp['bytes_per_s'] for qp in top['qps']]
        self.assertEqual(rates, sorted(rates, reverse=True))
        busy = {stage['stage']: stage['busy_share'] for stage in top['stages']}
        self.assertGreater(busy['encap'], 0)
        watched = self.good('counters', '--watch', '--count', '2', '--interval', '0.2', '--json',
                            '--hca', a['hca'], '--prefix', 'softhca', env=self.env)
        self.assertEqual(len(watched.splitlines()), 2)
        for line in watched.splitlines():
            self.assertGreater(json.loads(line)['sent_pkts'], 0)
        for name in VIEWS:
            self.assertIn(a['hca'], self.good(name, '--prefix', 'softhca', env=self.env))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
