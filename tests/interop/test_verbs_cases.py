#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How tests/interop/verbs judges the output of programs, and that its list of cases is complete."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest  # noqa: E402
import image  # noqa: E402
import verbs_rxe  # noqa: E402
from verbs_cases import GID_IPV6, Perftest, Pingpong, all_cases  # noqa: E402
from verbs_rig import Failed, both  # noqa: E402

BANDWIDTH = ' #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n'
GOOD = BANDWIDTH + ' 65536      320              612.11             598.40 \t\t     0.009574\n'
ZERO = BANDWIDTH + ' 65536      320              0.00               0.00   \t\t     0.000000\n'
SLOW = BANDWIDTH + ' 2          32               0.01               0.00   \t\t     0.001947\n'
LATENCY = (' #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n'
           ' 2       320          2.31           9.02         2.50     	       2.61\n')
NO_LATENCY = ' 2       320          inf            inf          inf     	       -nan\n'
NO_CLOCK = 'Correlation coefficient r^2: 0.61 < 0.9\n'
BY_WR = ' ibv_wr* API     : ON\n'
BY_POST = ' ibv_wr* API     : OFF\n'


class Judged(unittest.TestCase):
    def bandwidth(self, client, server='', where='two', **more):
        return Perftest(where, 'ib_write_bw', '-c', 'RC', **more).judge(client, server)

    def test_results(self):
        self.assertEqual(self.bandwidth(GOOD), ('', '65536 B: 598.40 MiB/s'))
        self.assertEqual(self.bandwidth(BANDWIDTH)[0], 'no result')
        self.assertIn('a result of 0', self.bandwidth(ZERO)[0])
        self.assertIn('a result of 0: (65536, ', self.bandwidth(ZERO + GOOD)[0])
        self.assertEqual(self.bandwidth(SLOW)[0], '')
        latency = Perftest('two', 'ib_write_lat', '-c', 'RC')
        self.assertEqual(latency.judge(LATENCY, ''), ('', '2 B: 2.50 us'))
        self.assertEqual(latency.judge(NO_LATENCY, '')[0], 'no result')

    def test_no_clock(self):
        """Others took the CPU while perftest measured its frequency: its numbers say nothing."""
        latency = Perftest('two', 'ib_write_lat', '-c', 'RC')
        for case, said in (self.bandwidth, ZERO), (lambda said: latency.judge(said, ''), NO_LATENCY):
            reason, shown = case(NO_CLOCK + said)
            self.assertEqual(reason, '')
            self.assertIn('had no clock', shown)
        self.assertEqual(self.bandwidth(NO_CLOCK)[0], 'no result')

    def test_wr_api(self):
        """Where IDs are known, by our end: the other may be rxe."""
        for where, role, client, server, reason in (
                ('known', 'client', BY_WR, BY_POST, ''),
                ('known', 'client', BY_POST, BY_WR, 'not by ibv_wr_*'),
                ('rxe-known', 'client', BY_POST, BY_WR, 'not by ibv_wr_*'),
                ('rxe-known', 'server', BY_POST, BY_WR, ''),
                ('rxe-known', 'server', BY_WR, BY_POST, 'not by ibv_wr_*'),
                ('rxe', 'server', BY_POST, BY_POST, '')):
            self.assertEqual(self.bandwidth(client + GOOD, server, where, role=role)[0], reason)

    def test_pingpong(self):
        good = '100 iters in 0.01 seconds = 57.31 usec/iter\n'
        case = Pingpong('rxe', 'ibv_rc_pingpong', role='server')
        self.assertEqual(case.judge(good, good), ('', '57.31 us'))
        self.assertEqual(case.judge('', good)[0], 'no result')
        self.assertEqual(case.judge(good, 'invalid data in page 1\n' + good)[0], 'invalid data')


class Cases(unittest.TestCase):
    def setUp(self):
        self.cases = list(all_cases())

    def test_names(self):
        names = [case.name for case in self.cases]
        self.assertEqual(len(set(names)), len(names))

    def test_inline(self):
        """All requests of a program with -I are inline, if our end posts requests."""
        for case in self.cases:
            posts = case.role == 'client' or case.command[0].endswith('_lat')
            count = int(case.words()[case.words().index('-n') + 1]) if '-I' in case.words() else 0
            self.assertEqual(case.least_inline(), count if posts else 0, case.name)
        self.assertTrue({'known', 'rxe-known'} <= {case.where for case in self.cases
                                                   if case.least_inline() > 0})

    def test_rxe(self):
        """The cases of rxe: a part of all cases, with our end as client and as server, by both IP versions."""
        ours = {case.command for case in self.cases if case.where == 'two'}
        for role in 'client', 'server':
            theirs = {case.command for case in self.cases if (case.where, case.role) == ('rxe', role)}
            self.assertEqual([command for command in theirs if 'XRC' in command], [])
            self.assertTrue(theirs <= ours)
            for program in {command[0] for command in ours} - {
                    'ibv_devices', 'ibv_devinfo', 'ibv_xsrq_pingpong'}:
                self.assertTrue([command for command in theirs if command[0] == program and
                                 GID_IPV6 in command], program)


class Ends:
    """A program for both(): it has an output and a status, or it does not end."""

    def __init__(self, said, status=0, ends=True):
        self.returncode = None
        self.text, self.status, self.ends = said, status, ends

    def said(self):
        return self.text

    def finish(self, limit):
        if not self.ends:
            raise Failed('not done after %d s' % limit, self.text)
        self.returncode = self.status

    def kill(self):
        if self.returncode is None:
            self.returncode = -9


class Both(unittest.TestCase):
    def reason(self, client, server):
        with self.assertRaises(Failed) as caught:
            both(client, server, 10)
        return str(caught.exception)

    def test_both(self):
        self.assertEqual(both(Ends('one'), Ends('two'), 10), ['one', 'two'])
        self.assertEqual(self.reason(Ends('x', 3), Ends('waits', ends=False)),
                         'the client ended with 3: x')
        self.assertEqual(self.reason(Ends(''), Ends('y', 4)), 'the server ended with 4: y')
        for client, server in (Ends('', ends=False), Ends('')), (Ends(''), Ends('', ends=False)):
            self.assertEqual(self.reason(client, server), 'not done after 10 s')
            self.assertIsNotNone(client.returncode)
            self.assertIsNotNone(server.returncode)


def script():
    """tests/interop/verbs itself."""
    loader = importlib.machinery.SourceFileLoader('verbs', os.path.join(HERE, 'verbs'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('verbs', loader))
    loader.exec_module(module)
    return module


class Skipped(unittest.TestCase):
    def test_no_machine(self):
        """Where there is no kernel for rxe the table says so, and it is no failure."""
        verbs = script()
        cases = [case for case in all_cases() if case.rxe]
        table, said = verbs.Table(False), io.StringIO()
        with mock.patch.object(guest, 'install_missing'), contextlib.redirect_stdout(said), \
                mock.patch.object(image, 'build', side_effect=image.Missing('no such kernel')):
            verbs.run_places(mock.Mock(build=HERE), cases, table)
        self.assertEqual(table.counts, {'pass': 0, 'FAIL': 0, 'SKIP': len(cases)})
        self.assertRegex(said.getvalue(), r'^SKIP +rxe +no virtual machine with rxe here: no such kernel')

    def test_gids(self):
        self.assertEqual(verbs_rxe.gid_text('::ffff:10.77.0.2'), '0000:0000:0000:0000:0000:ffff:0a4d:0002')


if __name__ == '__main__':
    unittest.main(verbosity=2)
