#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-ctl ping between two daemons joined by memif: round trips, sizes, faults on the way, peers that
answer no pings, and limits.

test_ping.py SOFTHCA-CTL SOFTHCAD [unittest arguments]
"""
import json
import os
import re
import sys
import threading
import time
import unittest

from daemon import Daemon, READY_S, ctl, folder

CTL, BINARY = [os.path.abspath(word) for word in sys.argv[1:3]]
IPS = ('10.66.0.1', '10.66.0.2')
IP6 = ('2001:db8:66::1', '2001:db8:66::2')
NOBODY = '10.66.0.77'


class Case(unittest.TestCase):
    """Two daemons, `a` and `b`."""

    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.names = ['shg%d%s' % (os.getpid(), side) for side in 'ab']

    def start(self, *parts):
        wire = os.path.join(self.place, self.id().split('.')[-1] + '.sock')
        self.daemons = []
        for side in range(2):
            d = Daemon(BINARY, self.place, self.names[side],
                       'net_memif0,role=%s,socket=%s' % (('server', 'client')[side], wire),
                       [IPS[side] + '/24', IP6[side] + '/64'], *parts)
            self.addCleanup(d.close)
            self.daemons.append(d.start())
        for d in self.daemons:
            d.wait_log('link up')

    def ping(self, *words, side=0):
        return ctl(CTL, 'ping', '--prefix', self.names[side], *words)

    def good(self, *words, **options):
        run = self.ping(*words, **options)
        self.assertEqual((run.returncode, run.stderr), (0, ''), run.stdout)
        return run.stdout

    def json(self, *words, status=0, **options):
        run = self.ping('--json', *words, **options)
        self.assertEqual((run.returncode, run.stderr), (status, ''), run.stdout)
        return json.loads(run.stdout)['ping']

    def bad(self, status, text, *words):
        run = self.ping(*words)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(text, run.stderr)

    def impair(self, side, *words):
        run = ctl(CTL, 'impair', '--prefix', self.names[side], *words)
        self.assertEqual(run.returncode, 0, run.stderr)

    def counter(self, side, name):
        run = ctl(CTL, 'counters', '--json', '--prefix', self.names[side])
        self.assertEqual(run.returncode, 0, run.stderr)
        found = re.search(r'"(?:cm_)?%s": (\d+)' % name, run.stdout)
        self.assertIsNotNone(found, name)
        return int(found.group(1))


class Peers(Case):
    def test_round_trips(self):
        self.start()
        for side, to in ((0, IPS[1]), (1, IPS[0]), (0, IP6[1]), (0, '::ffff:' + IPS[1])):
            text = self.good(to, '--count', '3', '--interval', '0.05', side=side)
            self.assertEqual(len(re.findall(r'^ping \d: \d+\.\d us$', text, re.M)), 3, text)
            self.assertRegex(text, r'3 sent, 3 answered; round trip min/avg/p99/max (\d+\.\d/?){4} us\n')
            self.assertIn('path MTU: datagrams of', text)
            self.assertNotIn('CE marks', text)
        own = self.json(IPS[0], '--count', '2')
        self.assertEqual((own['from'], own['received'], own['peer']), (IPS[0], 2, 'softhca'))
        told = self.json(IPS[1], '--count', '2')
        self.assertEqual((told['to'], told['from'], told['size']), (IPS[1], IPS[0], 256))
        self.assertTrue(0 < told['rtt_min_ns'] <= told['rtt_avg_ns'] <= told['rtt_max_ns'], told)
        self.assertEqual((told['ce_there'], told['ce_back'], told['duplicates']), (0, 0, 0))
        self.assertGreaterEqual(self.counter(1, 'pings_answered'), 3 + 3 + 3 + 2)
        self.sizes()
        self.many_at_once()
        self.wrong()

    def sizes(self):
        mtu = self.daemons[0].ask('/softhca/endpoint')['roce_mtu']
        self.assertEqual(self.json(IPS[1], '--count', '1')['passed'], mtu)
        told = self.json(IPS[1], '--size', str(mtu - 96), '--count', '3')
        self.assertEqual((told['received'], told['passed'], told['failed']), (3, mtu - 96, 0))
        if mtu < 4096:
            self.bad(1, 'the port\'s RoCE MTU is %d' % mtu, IPS[1], '--size', '4096')

    def many_at_once(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.ping('--json', IPS[1], '--count', '5')))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(run.returncode, run.stderr) for run in results], [(0, '')] * 4, results)
        self.assertEqual(sum(json.loads(run.stdout)['ping']['received'] for run in results), 20)

    def wrong(self):
        self.bad(2, '--size: expected a number from 256 to 4096, found "255"', IPS[1], '--size', '255')
        self.bad(2, '--count', IPS[1], '--count', '0')
        self.bad(2, '--interval', IPS[1], '--interval', '0.001')
        self.bad(2, 'expected the name or the address of one host')
        self.bad(2, 'expected the name or the address of one host', IPS[1], IPS[0])
        self.bad(1, 'no.such.name.invalid', 'no.such.name.invalid')
        self.bad(1, '239.1.1.1', '239.1.1.1')
        self.bad(1, 'next hop does not answer', NOBODY)
        for words in ('', 'size=300', 'to=%s,size=9' % IPS[1], 'to=%s,nonsense' % IPS[1], 'session=9999',
                      'session=1,to=%s' % IPS[1], 'to=' + 'x' * 90, 'session=4294967296'):
            self.assertIn('error', self.daemons[0].ask('/softhca/ping,' + words), words)


class Faulty(Case):
    def test_faults(self):
        """Faults of the frames of one direction, by name."""
        self.start()
        self.impair(0, '--ecn', '1')
        told = self.json(IPS[1], '--count', '3')
        self.assertEqual((told['received'], told['ce_there'], told['ce_back']), (3, 3, 0))
        self.assertIn('CE marks: on 2 pings, on 0 answers', self.good(IPS[1], '--count', '2'))
        self.impair(0, 'off')
        self.impair(1, '--ecn', '1')
        told = self.json(IPS[1], '--count', '3')
        self.assertEqual((told['received'], told['ce_there'], told['ce_back']), (3, 0, 3))
        self.impair(1, 'off')
        self.impair(0, '--dup', '1')
        told = self.json(IPS[1], '--count', '3')
        self.assertEqual((told['received'], told['duplicates']), (3, 3))
        self.impair(0, 'off')
        self.impair(0, '--drop', '1')
        run = self.ping(IPS[1], '--count', '2', '--interval', '0.05')
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn('ping 1: no answer', run.stdout)
        self.assertIn('no softhca answers; nothing answers', run.stdout)


class Ends(Case):
    def test_end(self):
        """End of the daemon, while a ping waits for a MAC address, and while one is under way."""
        self.start()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(self.ping(NOBODY)))
        running = threading.Thread(target=self.ping, args=(IPS[1], '--count', '1000'))
        running.start()
        while self.counter(0, 'pings_returned') == 0:
            time.sleep(0.02)
        asking.start()
        while self.daemons[0].ask('/softhca/kernif')['questions'] < 2: # the first one is for the other daemon
            time.sleep(0.02)
        self.assertEqual(self.daemons[0].stop(), 0)
        asking.join(READY_S)
        running.join(READY_S)
        self.assertFalse(asking.is_alive() or running.is_alive())
        self.assertNotIn('next hop does not answer', answers[0].stderr)  # it is not waited for
        self.assertNotIn('error', self.daemons[0].text())

    def test_off(self):
        """[admin] ping = no: its connection manager still answers, and its own pings are sent."""
        self.start({'admin': {'ping': 'no'}})
        run = self.ping(IPS[1], '--count', '2')
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn('%s: no softhca answers; a connection manager does' % IPS[1], run.stdout)
        self.assertEqual(self.counter(1, 'pings_off'), 2)
        told = self.json(IPS[1], '--size', '1024', status=1)
        self.assertEqual((told['peer'], told['sent']), ('cm', 0)) # nothing longer than a MAD


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
