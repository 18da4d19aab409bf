#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults that aim: QPs of softhca-perf that are held before their traffic, frames by name, captures with the
faults as comments, and captures that repeat.

test_held.py SOFTHCA-PERF [unittest arguments]
"""
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

PERF = os.path.abspath(sys.argv.pop(1))
TIMEOUT_S = 240
SMALL = '--no-huge', '--mbufs', '1024', '--seed', '5', '--iters', '320'


def packets(path):
    """[(bytes of the frame, comment)] of a pcapng file."""
    with open(path, 'rb') as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        kind, total = struct.unpack_from('<II', data, at)
        if kind == 6:
            kept = struct.unpack_from('<I', data, at + 20)[0]
            option = at + 28 + (kept + 3) // 4 * 4
            code, length = struct.unpack_from('<HH', data, option)
            comment = data[option + 4:option + 4 + length].decode() if code == 1 else ''
            found.append((data[at + 28:at + 28 + kept], comment))
        at += total
    return found


class Held(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.path = os.path.join(place.name, 'x.pcapng')

    def run_perf(self, *words, status=0):
        done = subprocess.run([PERF, *SMALL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, encoding='utf-8', timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def begin(self, *words):
        process = subprocess.Popen([PERF, *SMALL, '--pause-before-traffic', *words], stdout=subprocess.PIPE,
                                   stdin=subprocess.PIPE, encoding='utf-8')
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def held(self, process, what='QP'):
        """The numbers of the first pair."""
        text = ''
        while 'goes on' not in text:
            line = process.stdout.readline()
            self.assertTrue(line, text)
            text += line
        return re.search(r'%s (0x[0-9a-f]+) <-> %s (0x[0-9a-f]+)' % (what, what), text).groups()

    def opcodes(self):
        """[(opcode, PSN, comment)] of the frames of the capture: IPv4 without a VLAN."""
        return [(frame[42], int.from_bytes(frame[51:54], 'big'), comment)
                for frame, comment in packets(self.path)]

    def test_line(self):
        """The third frame of an answer to that QP is lost, once, and sent again."""
        process = self.begin('--op', 'read', '--size', '16K', '--qps', '2', '--pcap', self.path)
        qpn = self.held(process)[0]
        process.stdin.write('drop,opcode=nonsense\ndrop,opcode=read-response,nth=3,qp=%s\n\n' % qpn)
        process.stdin.flush()
        said = process.stdout.read()
        self.assertEqual(process.wait(TIMEOUT_S), 0, said)
        self.assertIn('"opcode=nonsense": expected send', said)
        self.assertIn('added: drop,opcode=read-response,nth=3,qp=' + qpn, said)
        frames = self.opcodes()
        marked = [i for i, frame in enumerate(frames) if frame[2] != '']
        self.assertEqual([frames[i][2] for i in marked], ['drop by rule 1'])
        opcode, psn, _ = frames[marked[0]]
        self.assertIn(opcode, (13, 14, 15))
        to_qp = [i for i, (frame, _) in enumerate(packets(self.path))
                 if 13 <= frame[42] <= 16 and int.from_bytes(frame[47:50], 'big') == int(qpn, 16)]
        self.assertEqual(to_qp[2], marked[0])
        self.assertTrue(any(again[:2] != (12, psn) and again[1] == psn for again in frames[marked[0] + 1:]))

    def test_signal(self):
        """Without input it waits for a signal; a checking pass is also held."""
        process = self.begin('--op', 'write', '--size', '4K', '--verify')
        process.stdin.close()
        first = self.held(process)
        process.send_signal(signal.SIGUSR1)
        second = self.held(process)
        self.assertNotEqual(first, second)
        process.send_signal(signal.SIGUSR1)
        said = process.stdout.read()
        self.assertEqual(process.wait(TIMEOUT_S), 0, said)
        self.assertIn('verified', said)

    def test_interrupted(self):
        process = self.begin('--wire', 'ub', '--op', 'write', '--size', '4K')
        self.held(process, 'Jetty')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT_S), 130)

    def test_rules(self):
        """The same on the command line, twice, with probabilities; UB by its own names."""
        said = self.run_perf('--op', 'read', '--size', '16K', '--pcap', self.path, '--verify',
                             '--impair', 'drop,opcode=read-response,nth=3;corrupt_icrc,opcode=read-request,nth=2')
        self.assertIn('verified', said)
        self.assertEqual(sorted({comment for _, _, comment in self.opcodes()}),
                         ['', 'corrupt_icrc by rule 2', 'drop by rule 1'])
        said = self.run_perf('--wire', 'ub', '--op', 'read', '--size', '16K', '--pcap', self.path, '--verify',
                             '--impair', 'drop,opcode=read-response,nth=3', '--impair', 'drop,opcode=tpack,nth=1')
        self.assertIn('verified', said)
        self.assertEqual(sorted({comment for _, comment in packets(self.path)}),
                         ['', 'drop by rule 1', 'drop by rule 2'])

    def test_wrong(self):
        for faults, reason in (('drop,opcode=foo', 'opcode=foo": expected send'), ('drop', 'drop=0.01'),
                               ('gid=change', 'only of daemons'), ('drop=0.1;melt', 'melt')):
            self.assertIn(reason, self.run_perf('--impair', faults, status=2))
        self.assertIn('there is no QP 0x5', self.run_perf('--impair', 'drop,qp=5', status=1))

    def test_repeated(self):
        """Simulated time, one seed: captures differ in addresses of memory only, and not at all if these are
        fixed."""
        if subprocess.run(['setarch', '-R', 'true'], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest('this container does not permit fixed addresses')
        files = []
        for more in (), (), ('--fixed-addresses',), ('--fixed-addresses',):
            self.run_perf('--op', 'write', '--size', '8K', '--qps', '2', '--fabric', 'rate=100,delay=2,loss=0.01',
                          '--pcap', self.path, *more)
            with open(self.path, 'rb') as file:
                files.append(file.read())
            frames = packets(self.path)
            if not more:
                # the address of RETH and the ICRC of packets with one
                files[-1] = [frame[:54] + frame[62:-4] if frame[42] in (6, 10) else frame for frame, _ in frames]
        self.assertEqual(files[0], files[1])
        self.assertGreater(len(files[2]), 1 << 20)
        self.assertTrue(files[2] == files[3])


if __name__ == '__main__':
    unittest.main()
