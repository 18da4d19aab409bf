#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-perf --flows: traffic of a file to servers on another daemon.

test_perf_flows.py SOFTHCAD SOFTHCA-PERF [unittest arguments]
"""
import json
import os
import subprocess
import sys
import unittest

from daemon import free_port
from test_perf import LIMIT_S, PERF, Case


class Flows(Case):
    def run_flows(self, text, status=0):
        path = os.path.join(self.place, 'flows.txt')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        done = subprocess.run(self.prefix(1) + [PERF, '--device', self.daemons[1].socket, '--flows', path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', timeout=LIMIT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_peers(self):
        """A file with two servers: flows of both at once, in the order of its lines."""
        servers, text = [], ''
        for op in 'write', 'read':
            servers.append(self.server())
            text += 'size=1M message=32K rate=1 op=%s dscp=26 peer=%s:%d\n' % (op, self.host, self.port)
            text += 'start=10ms duration=DURATION message=4K rate=0.1 congestion=swift peer=%s:%d\n' % (
                self.host, self.port)
        for ms in 100, 1000, 10000:  # on a busy machine the program may have no CPU for the whole of it
            done = self.run_flows(text.replace('DURATION', '%dms' % ms))
            flows = [json.loads(line) for line in done.stdout.splitlines()]
            if flows[1]['messages'] and flows[3]['messages']:
                break
        self.assertEqual([f['line'] for f in flows], [1, 2, 3, 4])
        self.assertEqual([f['congestion'] for f in flows], ['default', 'swift', 'default', 'swift'])
        self.assertEqual([f['op'] for f in flows], ['write', 'write', 'read', 'write'])
        for flow in flows[0], flows[2]:
            self.assertEqual((flow['bytes'], flow['messages'], flow['failed']), (1 << 20, 32, False))
        for flow in flows[1], flows[3]:
            self.assertGreater(flow['messages'], 0)
        for server in servers:
            self.clean_end(server)

    def test_no_server(self):
        why = self.run_flows('size=1 peer=%s:%d\n' % (self.host, free_port()), status=1).stderr
        self.assertIn('no server at', why)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
