#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The five commands of the README: the daemons of the two memif examples, a transfer between them.

test_five.py EXAMPLES SOFTHCAD SOFTHCA-PERF [TURNS]

Each turn starts the daemons afresh, in either order, and the programs without waiting for anything,
as pasted commands do. Every byte is right, nothing is sent twice, no frame is thrown away. Daemons
have names and sockets of their own: others with the same configuration may run.
"""
import json
import os
import re
import subprocess
import sys

from daemon import Daemon, die_with_parent, folder, free_port

EXAMPLES, DAEMON, PERF = (os.path.abspath(path) for path in sys.argv[1:4])
TURNS = int(sys.argv[4]) if len(sys.argv) > 4 else 2
LIMIT_S = 240  # a longer run counts as hung
# Counters of a device that sent twice or threw away
LOSSES = re.compile('retransmissions|timeout|nak|discard|drop')
ORDERS = (0, 1), (1, 0)


class Example(Daemon):
    """An example as it is, but for its name and the folder of its sockets."""

    def __init__(self, place, side):
        name = 'five%d%s' % (os.getpid(), side)
        super().__init__(DAEMON, place, name, '', [])
        path = os.path.join(EXAMPLES, 'memif-%s.conf' % side)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        text, sockets = re.subn('socket=/run/softhca/', 'socket=%s/' % place, text)
        text, names = re.subn(r'(?m)^name = \w+$', 'name = ' + name, text)
        assert (sockets, names) == (1, 1), path
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write('%s\n[control]\nsocket = %s\n' % (text, self.socket))


class Turn:
    def __init__(self, place):
        self.place = place
        self.port = str(free_port())
        self.daemons = [Example(place, side) for side in 'ab']
        self.programs = []

    def program(self, daemon, *words):
        self.programs.append(subprocess.Popen(
            [PERF, '--device', daemon.socket, *words], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding='utf-8', preexec_fn=die_with_parent))

    def transfer(self, order):
        """Output of the programs, and the rows of the client."""
        rows = os.path.join(self.place, 'rows.json')
        for side in order:
            self.daemons[side].start(wait=False)
        self.program(self.daemons[0], '--once', '--server', self.port)
        self.program(self.daemons[1], '--client', 'localhost:' + self.port, '--op', 'write',
                     '--verify', '--json', rows, '--ack-timeout', '20')  # longer than a daemon has no CPU
        said = [program.communicate(timeout=LIMIT_S)[0] for program in self.programs]
        ended = [program.returncode for program in self.programs]
        if ended != [0, 0]:
            raise AssertionError('the programs ended with %s:\n%s' % (ended, '\n'.join(said)))
        with open(rows, encoding='utf-8') as file:
            return said, json.load(file)['rows']

    def losses(self):
        """Counters of both daemons that should be 0 and are not."""
        found = []
        for daemon in self.daemons:
            counters = daemon.ask('/softhca/hca/counters')
            found += ['%s: %s = %d' % (daemon.name, name, value)
                      for name, value in sorted(counters.items())
                      if LOSSES.search(name) and value != 0]
        return found

    def faults(self, order):
        said, rows = self.transfer(order)
        found = self.losses()
        found += ['the daemon %s ended with %d' % (daemon.name, status)
                  for daemon in self.daemons for status in [daemon.stop()] if status != 0]
        row = rows[0]
        if len(rows) != 1 or not row['verified'] or row['retransmissions'] != 0 or row['lost'] != 0:
            found.append('the row of the client: %s' % row)
        if 'WRONG' in said[0] + said[1] or ' verified' not in said[1]:
            found.append('a label')
        print('%d messages, %.1f Gb/s, %d sent again: %s' % (
            row['msgs'], row['gbit_per_s'], row['retransmissions'], 'bad' if found else 'good'),
              flush=True)
        return found + ['\n'.join(said)] if found else []

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()
            program.stdout.close()
        for daemon in self.daemons:
            daemon.close()


def main():
    bad = 0
    for number in range(TURNS):
        with folder() as place:
            turn = Turn(place)
            try:
                found = turn.faults(ORDERS[number % 2])
                if found:
                    bad += 1
                    print('turn %d of %d:' % (number + 1, TURNS), '\n'.join(found))
                    print('\n'.join(daemon.text() for daemon in turn.daemons), flush=True)
            finally:
                turn.close()
    print('%d of %d turns without a loss' % (TURNS - bad, TURNS))
    return 1 if bad else 0


sys.exit(main())
