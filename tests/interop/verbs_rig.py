# SPDX-License-Identifier: BSD-3-Clause
"""Where tests/interop/verbs runs programs: daemons on a wire."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
for part in 'endpoint', 'verbs':
    sys.path.insert(0, os.path.join(ROOT, 'tests', part))
from daemon import READY_S, Daemon, Namespaces, die_with_parent, folder, free_port  # noqa: E402,F401
from tools import IPS, MACS, UNKNOWN, wait_listening  # noqa: E402

LEAST = 0.7  # of the bandwidth of softhca-perf
TRIES = 8           # of a comparison: other programs use the machine at the same time
MESSAGES = '50000'  # of each: half a second, as the beginning is slow
CONFIG = {
    'memory': {'hugepages': 'never', 'size_mb': 512},
    'limits': {'log_qps': 12, 'log_cqs': 12, 'log_mtts': 20},
    'pools': {'mbufs': 4096},
    'quota': {'user_share': 100},
}
KNOWN = {'hca': {'vendor_id': '0x2c9', 'vendor_part_id': 4119}}
OBJECTS = ('qps', 'cqs', 'srqs', 'mrs', 'mws', 'pds', 'xrcds', 'channels', 'ahs')


class Failed(Exception):
    """Why a case has not passed."""

    def __init__(self, reason, said=''):
        super().__init__(reason)
        self.said = said


class Program:
    """A program of this machine."""

    def __init__(self, command, environment):
        # not a pipe: with many QPs programs say more than one holds, while the other end is listened to
        self.text = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.text, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, env=environment,
                                        preexec_fn=die_with_parent)

    @property
    def returncode(self):
        return self.process.poll()

    def said(self):
        """From the beginning, without moving the place where it writes."""
        with open('/proc/self/fd/%d' % self.text.fileno(), encoding='utf-8', errors='replace') as file:
            return file.read()

    def finish(self, limit):
        try:
            self.process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed('not done after %d s' % limit, self.said()) from None
        return self.said()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Rig:
    """Two daemons on a wire, on which the cases of a place run."""

    def __init__(self, build, place, where):
        self.build = build
        self.where = where
        wire = 'socket=%s/wire' % place
        self.daemons = [
            self.daemon(place, 'ab'[side], 'net_memif0,role=%s,%s' % (role, wire),
                        [IPS[side] + '/24', '2001:db8:66::%d/64' % (side + 1)], MACS[side])
            for side, role in enumerate(('server', 'client'))]
        self.programs = []
        try:
            for d in self.daemons:
                d.start()
            for d in self.daemons:
                d.wait_log('link up')
        except BaseException:
            self.close()
            raise

    def daemon(self, place, letter, device, addresses, mac):
        name = 'shi%d%s%s' % (os.getpid() % 100000, self.where[0], letter)
        return Daemon(self.path('apps/softhcad'), place, name, device, addresses,
                      {'port': {'mac': mac}}, CONFIG, KNOWN if 'known' in self.where else {})

    def path(self, name):
        return os.path.join(self.build, name)

    def close(self):
        for program in self.programs:
            program.kill()
        for d in reversed(self.daemons):
            d.close()

    def daemon_of(self, side):
        return self.daemons[0 if self.where == 'one' else side]

    def begin(self, side, command):
        path = (self.path('src/verbs'), os.environ.get('LD_LIBRARY_PATH'))
        program = Program(command, dict(os.environ, SOFTHCA_DEBUG='1',
                                        SOFTHCA_DEVICE=self.daemon_of(side).socket,
                                        LD_LIBRARY_PATH=':'.join(filter(None, path))))
        self.programs = [p for p in self.programs if p.returncode is None] + [program]
        return program

    def pair(self, case, words):
        """Returns the output of the client and of the server after both ended with status 0."""
        port = free_port()
        words += '-p', str(port)
        server = self.begin(0, words)
        wait_listening(port, server.process)
        return both(self.begin(1, (*words, '127.0.0.1')), server, case.limit)

    def nothing_left(self):
        deadline = time.monotonic() + READY_S
        while True:
            left = {}
            for d in self.daemons:
                usage = d.ask('/softhca/usage')
                left.update({name: usage[name] for name in OBJECTS if usage.get(name)})
            if not left:
                return
            if time.monotonic() > deadline:
                raise Failed('left in a daemon: %s' % left)
            time.sleep(0.05)

    def perf(self, op):
        """Mb/s of softhca-perf with the sizes perftest has."""
        perf, port = self.path('apps/softhca-perf'), str(free_port())
        server = self.begin(0, (perf, '--device', self.daemon_of(0).socket, '--server', port, '--once'))
        wait_listening(int(port), server.process)
        said = self.begin(1, (perf, '--device', self.daemon_of(1).socket, '--client',
                              '127.0.0.1:' + port, '--op', op, '--post-list', '1',
                              '--json', '/dev/stdout')).finish(READY_S)
        server.finish(READY_S)
        return json.loads(said[said.index('{'):])['rows'][0]['gbit_per_s'] * 1000

    def inline(self):
        """Requests with inline data, posted by the program that is judged."""
        return self.daemon_of(1).ask('/softhca/hca/counters')['sq_inline']

    def alone(self, case):
        program = self.begin(0, case.words())
        said = program.finish(case.limit)
        if program.returncode != 0:
            raise Failed('it ended with %d: %s' % (program.returncode, last_line(said)), said)
        return said, ''

    def run(self, case):
        """Returns the text for the table."""
        before = self.inline()
        said = self.alone(case) if case.alone else self.pair(case, case.words())
        reason, shown = case.judge(*said)
        posted = self.inline() - before
        if not reason and posted < case.least_inline():
            reason = '%d requests posted inline, at least %d expected' % (posted, case.least_inline())
        if reason:
            raise Failed(reason, '\n'.join(said))
        self.nothing_left()
        return shown

    def compare(self, case, shown):
        best = 0
        for _ in range(TRIES):
            client = self.pair(case, case.words()[:-1] + (MESSAGES,))[0]
            ours, theirs = case.megabits(client), self.perf(case.comparison)
            best = max(best, ours / theirs if ours != UNKNOWN else 0)
            if best >= LEAST:
                return '%s, %.0f %% of softhca-perf' % (shown, best * 100)
        raise Failed('%.0f %% of softhca-perf (%.0f of %.0f Mb/s)' % (best * 100, ours, theirs))


def both(client, server, limit):
    """Returns the output of both after they ended with status 0. A server whose client has failed need not end."""
    try:
        client.finish(limit)
        if client.returncode == 0:
            server.finish(limit)
        with contextlib.suppress(Failed):
            server.finish(5)
    finally:
        for end in client, server:
            end.kill()
    said = [client.said(), server.said()]
    for end, name, text in zip((client, server), ('client', 'server'), said):
        if end.returncode != 0:
            raise Failed('the %s ended with %d: %s' % (name, end.returncode, last_line(text)),
                         '\n'.join(said))
    return said


def last_line(text):
    """The last thing that was said, most of all by the library."""
    lines = [line.strip() for line in text.split('\n') if line.strip()]
    ours = [line for line in lines if line.startswith('softhca:')]
    return (ours or lines or [''])[-1][:160]
