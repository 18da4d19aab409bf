#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons joined by memif, and programs that connect by address.

test_cm_daemons.py TESTS/ENDPOINT SOFTHCAD HELLO-CM CONNECT REBIND
"""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, sys.argv[1])
from daemon import Daemon, ended, folder  # noqa: E402

BINARY, HELLO, CONNECT, REBIND = [os.path.abspath(path) for path in sys.argv[2:6]]
LIMIT_S = 240  # a longer run counts as hung
ADDRESSES = [('10.68.0.%d' % n, '2001:db8:68::%d' % n) for n in (1, 2)]
TEXT = 'hello over a connection\n'


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = folder()
        cls.place = cls.context.__enter__()
        cls.addClassCleanup(cls.context.__exit__, None, None, None)
        cls.daemons = []
        for side, role in enumerate(('server', 'client')):
            daemon = Daemon(BINARY, cls.place, 'cm%d%s' % (os.getpid(), 'ab'[side]),
                            'net_memif0,role=%s,socket=%s/wire' % (role, cls.place),
                            ['%s/24' % ADDRESSES[side][0], '%s/64' % ADDRESSES[side][1]],
                            {'port': {'mac': '02:00:00:68:00:0%d' % (side + 1)}, 'limits': {'log_qps': 10},
                             'quota': {'client_share': 100}})
            cls.daemons.append(daemon)
            cls.addClassCleanup(daemon.close)
            daemon.start()
        for daemon in cls.daemons:
            daemon.wait_log('link up')

    def begin(self, program, *words):
        process = subprocess.Popen([program, *words], encoding='utf-8', stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def server(self, side=0):
        process = self.begin(HELLO, self.daemons[side].socket)
        self.assertEqual(process.stdout.readline(), 'waiting\n')
        return process


class Daemons(Case):
    def hello(self, client, server, address):
        serving = self.server(server)
        calling = self.begin(HELLO, self.daemons[client].socket, address)
        self.assertEqual((ended(calling, LIMIT_S), calling.stdout.read()), (0, ''))
        self.assertEqual((ended(serving, LIMIT_S), serving.stdout.read()), (0, TEXT))

    def wait_gone(self, *names):
        """The gauges of both daemons are 0."""
        deadline = time.monotonic() + LIMIT_S
        for daemon in self.daemons:
            while True:
                counters = daemon.ask('/softhca/cm/counters')
                left = {name: counters[name] for name in names if counters[name] != 0}
                if not left:
                    break
                self.assertLess(time.monotonic(), deadline, left)
                time.sleep(0.05)

    def test_hello(self):
        for client, server in ((1, 0), (0, 1), (0, 0)):
            for address in ADDRESSES[server]:
                with self.subTest(client=client, address=address):
                    self.hello(client, server, address)
        self.wait_gone('cm_now_ids', 'cm_now_ports', 'cm_now_memberships')

    def connect(self, count, *sides):
        return [CONNECT, '--count', str(count), '--alive', '50'] + [self.daemons[side].socket for side in sides]

    def test_restart(self):
        """The port of a process that has ended is free, though the daemon has not released it yet."""
        run = subprocess.run([REBIND, self.daemons[0].socket, '8'], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, encoding='utf-8', timeout=LIMIT_S, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, ''))

    def test_many(self):
        """Each is used, and verified; when TIMEWAIT is over nothing is left."""
        for count, sides in (200, (0, 1)), (100, (1, 1)):
            run = subprocess.run(self.connect(count, *sides), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 encoding='utf-8', timeout=LIMIT_S, check=False)
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertRegex(run.stdout, r'\n50 connections alive at once\n')
        self.wait_gone('cm_now_ids', 'cm_now_ports', 'cm_now_halves')

    def test_killed(self):
        """A program in the middle of many connections; the port can be bound again."""
        for _ in range(2):
            busy = self.begin(*self.connect(1000000, 1, 0))
            time.sleep(0.4)
            self.assertIsNone(busy.poll(), busy.poll() is not None and busy.stdout.read())
            busy.kill()
            busy.wait()
            self.wait_gone('cm_now_ids', 'cm_now_ports')
        self.assertEqual(subprocess.run(self.connect(20, 1, 0), stdout=subprocess.DEVNULL, timeout=LIMIT_S,
                                        check=False).returncode, 0)

    def test_no_listener(self):
        calling = self.begin(HELLO, self.daemons[1].socket, ADDRESSES[0][0])
        self.assertEqual((ended(calling, LIMIT_S), calling.stdout.read()),
                         (1, 'REJECTED (8) instead of CONNECT_RESPONSE\n'))
        calling = self.begin(HELLO, self.daemons[1].socket, '10.68.0.99')
        self.assertEqual(ended(calling, LIMIT_S), 1)
        # -113 after 3 s without an answer; -110 if these take more than the program's 5 s on busy CPUs
        self.assertRegex(calling.stdout.read(), r'^ADDR_ERROR \(-11[03]\) instead of ADDR_RESOLVED\n$')


class Ends(Case):
    def test_daemon_killed(self):
        serving = self.server()
        self.daemons[0].stop(signal.SIGKILL)
        self.assertEqual((ended(serving, LIMIT_S), serving.stdout.read()),
                         (1, 'DEVICE_REMOVAL (0) instead of CONNECT_REQUEST\n'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
