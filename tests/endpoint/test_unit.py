#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The unit of systemd: its restrictions, that the daemon works with them, and the linking of its program.

test_unit.py SOFTHCAD UNIT EXAMPLE [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

from daemon import Daemon, folder

SOFTHCAD, UNIT, EXAMPLE = [os.path.abspath(word) for word in sys.argv[1:4]]
SCORE_MAX = 3.0


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding='utf-8', check=False, timeout=240).stdout


def calls_of(name):
    """System calls of a group of systemd."""
    calls = set()
    for line in output('systemd-analyze', 'syscall-filter', name).splitlines()[1:]:
        word = line.strip()
        if word.startswith('@'):
            calls |= calls_of(word)
        elif word and not word.startswith('#'):
            calls.add(word)
    return calls


def allowed():
    """System calls that SystemCallFilter= of the unit allows."""
    with open(UNIT, encoding='utf-8') as file:
        lines = re.findall(r'^SystemCallFilter=(~?)(.*)$', file.read(), re.M)
    calls = set()
    for denies, words in lines:
        for word in words.split():
            named = calls_of(word) if word.startswith('@') else {word}
            calls = calls - named if denies else calls | named
    return calls


class Unit(unittest.TestCase):
    def setUp(self):
        if shutil.which('systemd-analyze') is None:
            self.skipTest('there is no systemd-analyze')

    def test_score(self):
        said = output('systemd-analyze', 'security', '--offline=true', UNIT)
        self.assertLess(float(re.search(r'exposure level for \S+: ([\d.]+)', said).group(1)),
                        SCORE_MAX, said)

    def test_calls(self):
        """A daemon that serves a client needs no other system calls."""
        if shutil.which('strace') is None:
            self.skipTest('there is no strace')
        calls = allowed()
        self.assertGreater(len(calls), 100)
        with folder() as place:
            trace = os.path.join(place, 'trace')
            daemon = Daemon(SOFTHCAD, place, 'unit%d' % os.getpid(), 'net_ring0', ['192.0.2.1/24'],
                            prefix=('strace', '-D', '-f', '-qq', '-o', trace))
            self.addCleanup(daemon.close)
            daemon.start()
            subprocess.run([EXAMPLE], check=True, timeout=240, stdout=subprocess.DEVNULL,
                           env={**os.environ, 'SOFTHCA_DEVICE': daemon.socket,
                                'LD_LIBRARY_PATH': os.path.dirname(EXAMPLE) + '/../src/verbs'})
            self.assertEqual(daemon.stop(), 0, daemon.text())
            with open(trace, encoding='utf-8', errors='replace') as file:
                made = set(re.findall(r'^\d+ +(\w+)\(', file.read(), re.M))
        self.assertIn('recvmsg', made)
        # DPDK's virtio driver asks for ports of the CPU: the unit never had the capability
        self.assertEqual(made - calls - {'iopl'}, set())


class Linked(unittest.TestCase):
    def test_program(self):
        if shutil.which('readelf') is None:
            self.skipTest('there is no readelf (package binutils)')
        said = output('readelf', '-hldW', SOFTHCAD)
        self.assertRegex(said, r'Type: +DYN')
        self.assertIn('GNU_RELRO', said)
        self.assertRegex(said, r'FLAGS.*(BIND_NOW|NOW)')


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
