#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons with traffic, one of which gets no CPU, or too little: the fate of the traffic, and the end
that names the trouble.

test_troubles.py SOFTHCA-CTL SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from daemon import Daemon, die_with_parent, ended, folder, free_port

CTL, DAEMON, PERF = [os.path.abspath(word) for word in sys.argv[1:4]]
TIMEOUT_S = 300  # seconds, on a busy machine: a longer run counts as hung
HOGS = 3
DISCARDED = 'frames discarded: the other end of the link took none'
SHORT = 'programs and workers share CPUs'


def on_cpu(cpu):
    """In a child, before it becomes the program."""
    def enter():
        die_with_parent()
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    return enter


class Case(unittest.TestCase):
    """Daemon 0 waits for a port that takes nothing, daemon 1 soon discards."""

    @classmethod
    def setUpClass(cls):
        context = folder()
        cls.place = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.cpu = min(os.sched_getaffinity(0))
        cls.daemons = []
        for side, role in enumerate(('server', 'client')):
            port = {'mac': '02:00:00:66:00:0%d' % (side + 1),
                    'discard_after_us': (60000000, 200000)[side]}
            d = Daemon(DAEMON, cls.place, 'sht%d%s' % (os.getpid(), 'ab'[side]),
                       'net_memif0,role=%s,socket=%s/wire' % (role, cls.place),
                       '10.66.0.%d/24' % (side + 1), {'port': port},
                       {'hca': {'lcores': cls.cpu}} if side == 1 else {})
            cls.addClassCleanup(d.close)
            cls.daemons.append(d.start())
        for d in cls.daemons:
            d.wait_log('link up')

    def perf(self, side, *words, cpu=None):
        """A client on this side and its server on the other; returns when frames are sent."""
        port = str(free_port())
        server = subprocess.Popen([PERF, '--device', self.daemons[1 - side].socket, '--once',
                                   '--timeout', str(TIMEOUT_S), '--server', port],
                                  stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.addCleanup(ended, server)
        self.addCleanup(server.kill)
        before = self.counter(side, 'sent_pkts')
        log = os.path.join(self.place, 'client-' + port)
        with open(log, 'wb') as file:
            client = subprocess.Popen([PERF, '--device', self.daemons[side].socket, '--client',
                                       '127.0.0.1:' + port, *words], stdout=file, stderr=file,
                                      preexec_fn=on_cpu(cpu))
        client.log = log
        self.addCleanup(ended, client)
        self.addCleanup(client.kill)
        self.wait(lambda: client.poll() is not None or
                  self.counter(side, 'sent_pkts') > before + 1000)
        return client

    def end(self, client, expected=0):
        """Its output; its exit status is the expected one."""
        status = ended(client)
        with open(client.log, encoding='utf-8', errors='replace') as file:
            text = file.read()
        self.assertEqual(status, expected, text)
        return text

    def counter(self, side, name):
        return self.daemons[side].ask('/softhca/hca/counters')[name]

    def wait(self, true):
        end = time.monotonic() + TIMEOUT_S
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def wait_said(self, words, *command):
        """softhca-ctl says so of daemon 1."""
        def said():
            run = subprocess.run([CTL, *command, '--prefix', self.daemons[1].name], timeout=TIMEOUT_S,
                                 stdout=subprocess.PIPE, encoding='utf-8', check=False)
            return words in run.stdout
        self.wait(said)


class Waits(Case):
    def test_slow_peer(self):
        """Off its CPU for a second: seven retries with ack timeout 14 are half a second."""
        stalled = False
        while not stalled:
            client = self.perf(0, '--size', '64K', '--ack-timeout', '14', '--duration', '0.3', '--verify')
            self.daemons[1].suspend()
            try:
                time.sleep(1)
                # no frames wait: it had just ended
                stalled = self.daemons[0].ask('/softhca/usage')['backlog'] != 0
            finally:
                self.daemons[1].resume()
            self.assertIn(' verified', self.end(client))
            for side in (0, 1):
                self.assertEqual(self.counter(side, 'tx_discard_stalled'), 0)
        self.assertNotIn('takes no frames', self.daemons[0].text())


class Named(Case):
    """By softhca-perf, status, doctor, top and the log."""

    def wait_named(self, words):
        for command in ['status'], ['doctor'], ['top', '--once', '--interval', '0.1']:
            self.wait_said(words, *command)

    def episodes(self):
        """Beginnings and ends of discarding, as the log has them."""
        return re.findall('takes no frames|no longer discarded', self.daemons[1].text())

    def wait_discards(self):
        before = self.counter(1, 'tx_discard_stalled')
        self.wait(lambda: self.counter(1, 'tx_discard_stalled') > before)

    def discards(self):
        """The log says once that they begin, and once that they have ended."""
        self.daemons[0].suspend()
        try:
            self.wait_discards()
            self.wait(lambda: len(self.episodes()) % 2 == 1)
            said = self.episodes()
            self.daemons[1].wait_log(DISCARDED)
            self.wait_discards()
            self.assertEqual(self.episodes(), said)
        finally:
            self.daemons[0].resume()
        self.wait(lambda: len(self.episodes()) % 2 == 0)

    def test_named(self):
        """The other end is off its CPU, and programs that never give way are on that of this worker and
        its program. UC goes on whatever is lost."""
        client = self.perf(1, '--service', 'uc', '--size', '64K', '--duration', '600', cpu=self.cpu)
        for _ in range(HOGS):
            hog = subprocess.Popen([sys.executable, '-c', 'while True: pass'],
                                   preexec_fn=on_cpu(self.cpu))
            self.addCleanup(hog.wait)
            self.addCleanup(hog.kill)
        for _ in range(2):
            self.discards()
        self.assertEqual(set(self.episodes()[::2]), {'takes no frames'})
        self.assertEqual(set(self.episodes()[1::2]), {'no longer discarded'})
        self.assertEqual(self.daemons[1].text().count(DISCARDED), 1)
        self.wait_named(DISCARDED)
        self.wait_named(SHORT + ', try --events')
        self.daemons[1].wait_log('for a CPU: ' + SHORT)
        client.send_signal(signal.SIGINT)
        said = self.end(client, 128 + signal.SIGINT)
        self.assertIn(DISCARDED, said)
        self.assertIn(SHORT + ': try --events', said)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
