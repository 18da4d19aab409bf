#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf --cm between two daemons: both ends meet by connection management.

test_perf_cm.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import re
import signal
import sys
import unittest

from test_perf import ADDRESSES, LIMIT_S, Case


class Cm(Case):
    """The measurements are those of the form over TCP: a QP of every service."""
    host = ADDRESSES[0][0].split('/')[0]

    def server(self, *words, seconds=20):
        return super().server('--cm', *words, seconds=seconds)

    def client(self, *words, port=None):
        return super().client('--cm', *words, port=port)

    def test_services(self):
        server = self.server()
        for words in (('--op', 'write'), ('--op', 'read', '--test', 'lat'), ('--service', 'uc', '--op', 'send'),
                      ('--service', 'ud'), ('--service', 'xrc', '--op', 'send'), ('--op', 'send', '--bidir'),
                      ('--op', 'send', '--events', '--qps', '20')):
            with self.subTest(words=words):
                self.good(*words)
        self.assertNotIn('failed', self.text(server))
        self.clean_end(server)

    def test_addresses(self):
        """The data goes where the ends have met."""
        server = self.server()
        for address, host in ((ADDRESSES[0][0], '%s'), (ADDRESSES[0][1], '[%s]')):
            address = address.split('/')[0]
            self.host = host % address
            self.assertRegex(self.good('--op', 'send'), r'# \S+ \(GID \d\) here, %s ' % re.escape(address))
        self.clean_end(server)

    def test_one_daemon(self):
        server = self.server()
        other, self.daemons[1] = self.daemons[1], self.daemons[0]
        try:
            self.good('--op', 'send', '--size', '3000')
        finally:
            self.daemons[1] = other
        self.clean_end(server)

    def test_nobody(self):
        for host, words in (('10.66.0.1', 'no server at 10.66.0.1, RDMA port 9\n'),
                            ('127.0.0.1', 'no server at 127.0.0.1, RDMA port 9\n'),
                            ('10.66.0.9', 'softhca-perf --gids')):
            self.host = host
            for seconds in '1', '5', '25', '125':  # a refusal that comes late is none
                out = self.run_client('--timeout', seconds, port=9, status=1)
                if words in out:
                    break
            self.assertIn(words, out)

    def test_killed(self):
        """The end of either process, and the daemons have nothing left of it."""
        server = self.server()
        client = self.client('--op', 'write', '--duration', '60', '--size', '4K')
        self.wait_text(server, '#bytes')
        client.kill()
        client.communicate()
        self.wait_text(server, 'has failed')
        self.good('--op', 'send', '--size', '3000')
        client = self.client('--op', 'send', '--duration', '60')
        self.wait_text(server, '#bytes', count=3)
        self.end(server, signal.SIGKILL)
        client.communicate(timeout=LIMIT_S)
        self.assertEqual(client.returncode, 1)
        self.clean_end(self.server())

    def test_two_clients(self):
        """One is served, the other waits for its turn."""
        server = self.server()
        clients = [self.client('--op', 'send', '--duration', '0.5') for _ in range(2)]
        for client in clients:
            out = client.communicate(timeout=LIMIT_S)[0]
            self.assertEqual(client.returncode, 0, out)
        self.clean_end(server)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
