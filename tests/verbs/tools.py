# SPDX-License-Identifier: BSD-3-Clause
"""Two daemons joined by memif, and programs of Debian on the drop-in libibverbs.so.1 at each."""
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'endpoint'))
from daemon import Daemon, die_with_parent, folder  # noqa: E402

MACS = ('02:00:00:66:00:01', '02:00:00:66:00:02')
IPS = ('10.66.0.1', '10.66.0.2')
GID_IPV4 = 1  # 0 is the link-local address
TIMEOUT_S = 240
UNKNOWN = math.inf


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_listening(port, process):
    """Until a TCP server of our own listens, without connecting to it."""
    wanted = ':%04X' % port
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        for table in '/proc/net/tcp', '/proc/net/tcp6':
            with open(table, encoding='ascii') as file:
                for line in file:
                    words = line.split()
                    if words[1].endswith(wanted) and words[3] == '0A':
                        return
        time.sleep(0.02)


def measured_rows(said):
    """Results of perftest: bytes, iterations, and the other numbers.

    Before it reports, perftest measures for 0.2 s how fast the cycle counter goes. If others take the
    CPU meanwhile it says that its points do not correlate, and prints 0, or inf, for all it has measured:
    those numbers are UNKNOWN.
    """
    clock = 'Correlation coefficient' not in said
    rows = re.findall(r'^ (\d+)[ \t]+(\d+)((?:[ \t]+%s){2,})' % (r'[\d.]+' if clock else r'[-\w.]+'),
                      said, re.M)
    return [(int(size), int(count), *(float(word) if clock else UNKNOWN for word in words.split()))
            for size, count, words in rows]


def result_of_0(row):
    """Neither bandwidth nor, of messages of a few bytes on a slow machine, a rate of messages."""
    return max(row[3:5]) <= 0


PIPELINES = {'pipelines': int(os.environ.get('SOFTHCA_PIPELINES', '1'))}


class Tools(unittest.TestCase):
    """Subclasses run programs. softhcad and the library's folder come from the command line."""
    softhcad = library = None
    hca = {}  # keys of section [hca] of the daemons
    timeout_s = TIMEOUT_S  # with a program that ends when it has done its work

    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        wire = 'socket=%s/wire' % self.place
        self.daemons = []
        for side, role in enumerate(('server', 'client')):
            d = Daemon(self.softhcad, self.place, 'shv%d%s' % (os.getpid(), 'ab'[side]),
                       'net_memif0,role=%s,%s' % (role, wire), IPS[side] + '/24',
                       {'port': {'mac': MACS[side]}, 'hca': {**PIPELINES, **self.hca},
                        'memory': {'size_mb': 192 + 64 * PIPELINES['pipelines']}})
            self.addCleanup(d.close)
            self.daemons.append(d)
        for d in self.daemons:
            d.start()
        for d in self.daemons:
            d.wait_log('link up')

    def environment(self, side, **more):
        path = os.environ.get('LD_LIBRARY_PATH')
        return {**os.environ, 'LD_LIBRARY_PATH': self.library + (':' + path if path else ''),
                'SOFTHCA_DEBUG': '1', 'SOFTHCA_DEVICE': self.daemons[side].socket, **more}

    def tool(self, name):
        if shutil.which(name) is None:
            self.skipTest('%s is missing (packages ibverbs-utils and perftest)' % name)

    def begin(self, side, *command, **more):
        self.tool(command[0])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   encoding='utf-8', env=self.environment(side, **more),
                                   preexec_fn=die_with_parent)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()

    def finish(self, process, status=0):
        """Its output, after it ended well."""
        try:
            text = process.communicate(timeout=self.timeout_s)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            text = process.communicate()[0] + '\nstill running: killed'
        self.assertEqual(process.returncode, status, '%s: %s' % (process.args, text))
        return text

    def run_at(self, side, *command, **more):
        return self.finish(self.begin(side, *command, **more))

    def pair(self, *command, sides=(0, 1), **more):
        """Output of the server at the first side's daemon and of the client at the second's."""
        port = free_port()
        command += '-p', str(port)
        server = self.begin(sides[0], *command, **more)
        wait_listening(port, server)
        client = self.begin(sides[1], *command, '127.0.0.1', **more)
        said = [self.finish(end) for end in (client, server)]
        return said[1], said[0]

    @staticmethod
    def left(daemon):
        used = daemon.ask('/softhca/usage')
        return {key: used[key] for key in ('qps', 'cqs', 'mrs', 'pds', 'channels') if used[key]}

    def stop(self):
        """The daemons end well, without objects of their clients."""
        for d in self.daemons:
            deadline = time.monotonic() + TIMEOUT_S
            while self.left(d) and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertEqual(self.left(d), {})
        for d in reversed(self.daemons):
            self.assertEqual(d.stop(), 0, d.text())


def main():
    Tools.softhcad, Tools.library = [os.path.abspath(word) for word in sys.argv[1:3]]
    unittest.main(module='__main__', argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
