#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of programs and daemons that connect by address, at random moments: the survivors learn of it,
nothing is left, and the port can be bound again at once. Prints the times of each kind of kill.

test_cm_kills.py --build DIR [--rounds N] [--away N] [--jobs N] [--seed N] PROGRAM...

PROGRAM: kill-softhca, kill-rdmacm: one program on two libraries; each end of a round is one of them.
"""
import argparse
import errno
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), 'endpoint'))
from daemon import Daemon, ctl, die_with_parent, folder  # noqa: E402

TIMEOUT_S = 240  # seconds, on a busy machine
PROMPT_S = 1    # for a survivor that a message tells
FAMILIES = 'IPv4', 'IPv6'
OBJECTS = 'qps', 'cqs', 'srqs', 'mrs', 'mws', 'pds', 'xrcds', 'channels', 'ahs'
CONFIG = {'quota': {'client_share': 100, 'user_share': 100}, 'limits': {'log_qps': 10}}
# Moments: lines of the program before them
CLIENT_AT = 'start', 'resolve', 'connect', 'data', 'data', 'disconnect'
SERVER_AT = 'request', 'accept', 'accept', 'disconnected'
DELAY_MS = 0.0, 0.3, 1, 5, 30, 150


class Program:
    """kill-softhca or kill-rdmacm; its lines are read by a thread."""

    def __init__(self, build, path, daemon, *words):
        self.name = '%s of %s' % (' '.join(map(str, words)), os.path.basename(path))
        self.lines, self.changed = [], threading.Condition()
        environment = dict(os.environ, SOFTHCA_DEBUG='1', SOFTHCA_DEVICE=daemon.socket, LD_LIBRARY_PATH=':'.join(
            filter(None, (os.path.join(build, 'src/verbs'), os.environ.get('LD_LIBRARY_PATH')))))
        self.process = subprocess.Popen([path, daemon.socket, *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                                        env=environment, preexec_fn=die_with_parent)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.strip().split(' ', 1)
            with self.changed:
                self.lines.append((int(words[0]), words[1]) if words[0].isdigit() and len(words) == 2
                                  else (time.monotonic_ns(), line.strip()))
                self.changed.notify_all()
        with self.changed:
            self.lines.append((time.monotonic_ns(), None))
            self.changed.notify_all()

    def said(self):
        return '\n'.join('  %d.%06d %s' % (ns // 10**9, ns // 1000 % 10**6, line) for ns, line in self.lines[-60:])

    def fail(self, what):
        raise AssertionError('%s: %s\n%s' % (self.name, what, self.said()))

    def wait(self, true, what):
        """Until true(self) is; its value."""
        deadline = time.monotonic() + TIMEOUT_S
        with self.changed:
            while True:
                value = true(self)
                if value:
                    return value
                if self.lines and self.lines[-1][1] is None:
                    self.fail('it ended before: ' + what)
                if not self.changed.wait(max(0, deadline - time.monotonic())):
                    self.fail('it does not come to: ' + what)

    def count(self, words):
        return sum(line is not None and line.startswith(words) for _, line in self.lines)

    def alive(self):
        """Time and number of the last word on it."""
        found = [(ns, int(line.split()[1])) for ns, line in self.lines if line and line.startswith('alive')]
        return found[-1] if found else (0, 0)

    def learned(self, since):
        return [(ns, line.split(' ', 1)[1]) for ns, line in self.lines
                if ns >= since and line and line.startswith(('learned', 'failed'))]

    def ended(self, may=(0,)):
        """Without a signal."""
        try:
            status = self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.fail('it does not end')
        self.reader.join()
        if status not in may:
            self.fail('it ended with %d' % status)

    def finish(self):
        self.process.stdin.close()
        self.ended()

    def kill(self):
        self.process.kill()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for pipe in self.process.stdin, self.process.stdout:
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class Kind:
    """A kind of kill; the ms until each survivor has learned of it, by event."""

    def __init__(self, name, sides, victim, moments, prompt=True, links=2, away=False):
        self.name, self.sides, self.victim, self.moments = name, sides, victim, moments
        self.prompt, self.links, self.away = prompt, links, away
        self.times, self.ways, self.rounds, self.nothing = [], {}, 0, 0


def kinds():
    """Sides: daemons of the server and of the client."""
    return [
        Kind('client', (0, 1), 'client', CLIENT_AT),
        Kind('server', (0, 1), 'server', CLIENT_AT + SERVER_AT),
        Kind("client's daemon", (0, 1), 'client daemon', CLIENT_AT + SERVER_AT, prompt=False),
        Kind("server's daemon", (0, 1), 'server daemon', CLIENT_AT + SERVER_AT, prompt=False),
        Kind('client, one daemon', (1, 1), 'client', CLIENT_AT),
        Kind('server, one daemon', (0, 0), 'server', CLIENT_AT + SERVER_AT),
        Kind('the one daemon', (0, 0), 'server daemon', CLIENT_AT + SERVER_AT),
        Kind('20 of 50 connections', (0, 1), 'some', ('data',), links=10),
    ]


def away_kinds():
    """Daemons that come back only when all survivors have ended."""
    return [Kind("server's daemon, gone", (0, 1), 'server daemon', ('connect', 'data', 'disconnect'), prompt=False,
                 away=True),
            Kind("client's daemon, gone", (0, 1), 'client daemon', ('accept', 'data', 'disconnected'), prompt=False,
                 away=True)]


class Pair:
    """Two daemons joined by memif."""

    def __init__(self, options, place, number):
        self.options, self.place = options, place
        net = number + 1
        self.addresses = [('10.69.%d.%d' % (net, side), '2001:db8:69:%d::%d' % (net, side)) for side in (1, 2)]
        self.daemons, self.programs = [], []
        for side, role in enumerate(('server', 'client')):
            self.daemons.append(Daemon(
                os.path.join(options.build, 'apps/softhcad'), place, 'shk%d%d%s' % (os.getpid(), number, 'ab'[side]),
                'net_memif0,role=%s,socket=%s/wire%d' % (role, place, number),
                ['%s/24' % self.addresses[side][0], '%s/64' % self.addresses[side][1]],
                {'port': {'mac': '02:00:00:69:%02x:0%d' % (net, side + 1)}}, CONFIG))
        try:
            for d in self.daemons:
                d.start()
            self.wait_link()
        except BaseException:
            self.close()
            raise

    def wait_link(self):
        deadline = time.monotonic() + TIMEOUT_S
        while not all(d.ask('/softhca/endpoint')['link'] for d in self.daemons):
            if time.monotonic() > deadline:
                raise AssertionError('no link')
            time.sleep(0.02)

    def begin(self, program, side, *words):
        p = Program(self.options.build, program, self.daemons[side], *words)
        self.programs.append(p)
        return p

    def server(self, program, side, address, port=0):
        p = self.begin(program, side, 'serve', address, port)
        p.port = int(p.wait(lambda p: [line for _, line in p.lines if line and line.startswith('listening')],
                            'listening')[0].split()[1])
        return p

    def end_round(self):
        for p in self.programs:
            p.close()
        self.programs = []

    def close(self):
        self.end_round()
        for d in reversed(self.daemons):
            d.close()

    # ---- ids, counters and objects ----

    def ids(self, side):
        run = ctl(os.path.join(self.options.build, 'apps/softhca-ctl'), 'cm', '--json', '--prefix',
                  self.daemons[side].name)
        if run.returncode != 0:
            raise AssertionError(run.stderr)
        answer = json.loads(run.stdout)
        return (answer[0] if isinstance(answer, list) else answer)['cm']

    def left(self):
        found = {}
        for side, d in enumerate(self.daemons):
            usage, counters = d.ask('/softhca/usage'), d.ask('/softhca/cm/counters')
            found.update({'%s of %d' % (name, side): usage[name] for name in OBJECTS if usage.get(name)})
            found.update({'%s of %d' % (name, side): n for name, n in counters.items()
                          if name.startswith('cm_now_') and n})
        return found

    def nothing_left(self):
        """Once TIMEWAIT is over."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = self.left()
            if not found:
                break
            if time.monotonic() > deadline:
                raise AssertionError('left in the daemons: %s %s' % (found, [self.ids(side) for side in (0, 1)]))
            time.sleep(0.05)
        for side in 0, 1:
            if self.ids(side):
                raise AssertionError('softhca-ctl cm: %s' % self.ids(side))


class Round:
    def __init__(self, pair, kind, seed):
        self.pair, self.kind, self.seed = pair, kind, seed
        self.random = random.Random(seed)
        self.server_program, self.client_program = (self.random.choice(pair.options.programs) for _ in range(2))
        self.family = self.random.randrange(2)
        self.moment = self.random.choice(kind.moments)
        self.delay_ms = self.random.choice(DELAY_MS) * self.random.random()
        # :: takes both families
        self.everywhere = self.random.choice(('::', '0.0.0.0') if self.family == 0 else ('::',))
        self.killed_ns = 0

    def text(self):
        return '%s at %s + %.1f ms, %s, server: %s, client: %s, round %d' % (
            self.kind.name, self.moment, self.delay_ms, FAMILIES[self.family],
            os.path.basename(self.server_program), os.path.basename(self.client_program), self.seed)

    def call(self, port, links, how):
        server_side, client_side = self.kind.sides
        return self.pair.begin(self.client_program, client_side, 'call',
                               self.pair.addresses[server_side][self.family], port, links, how)

    def await_moment(self, server, clients):
        """The nth time that a program says so; then some time more."""
        if self.moment in SERVER_AT:
            who, words = server, 'learned' if self.moment == 'disconnected' else 'at ' + self.moment
        else:
            who, words = clients[0], 'at ' + self.moment
        times = self.random.randrange(1, 4) if words not in ('at start',) else 1
        if self.kind.victim == 'some':  # all are up
            server.wait(lambda p: p.alive()[1] == 50, '50 connections')
            for client in clients:
                client.wait(lambda p: p.count('at data'), 'data')
        who.wait(lambda p: p.count(words) >= (1 if self.kind.victim == 'some' else times), words)
        time.sleep(self.delay_ms / 1000)

    def kill(self, server, clients):
        """Returns the survivors with connections to the victim."""
        side = self.kind.sides[0 if self.kind.victim.startswith('server') else 1]
        self.killed_ns = time.monotonic_ns()
        if self.kind.victim == 'server':
            server.kill()
            return clients
        if self.kind.victim == 'client':
            clients[0].kill()
            return [server]
        if self.kind.victim == 'some':
            for client in clients[:2]:
                client.kill()
            return [server]
        self.pair.daemons[side].stop(signal.SIGKILL)
        return [server, *clients]

    def learns(self, survivor, expected):
        """Until it has no connection with the victim."""
        if survivor.device_dead:
            survivor.ended(may=(0, 1))  # 1: it had just begun
        elif survivor.name.startswith('call'):
            survivor.ended()
        else:
            # a request of the dead client may still come
            self.settled(survivor, expected)
        found = survivor.learned(self.killed_ns)
        for ns, how in found:
            self.note(ns, how)
        if not found:
            self.kind.nothing += 1

    def settled(self, server, expected):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            server.wait(lambda p: p.alive()[1] == expected, '%d connections alive' % expected)
            ids = [row for row in self.pair.ids(self.kind.sides[0]) if row['id'] != 0 and row['state'] != 'LISTENING']
            own = expected if self.kind.sides[0] != self.kind.sides[1] else expected * 2
            if len(ids) == own and server.alive()[1] == expected:
                return
            if time.monotonic() > deadline:
                server.fail('%d ids for %d connections: %s' % (len(ids), expected, ids))
            time.sleep(0.02)

    def note(self, ns, how):
        ms = (ns - self.killed_ns) / 1e6
        words = how.replace('RDMA_CM_EVENT_', '').split()
        way = words[0] + ('' if words[1] == '0' else ' ' + words[1])
        self.kind.times.append(ms)
        self.kind.ways.setdefault(way, []).append(ms)
        if self.kind.prompt and (words[0] == 'completion' or words[1] == str(-errno.ETIMEDOUT)):
            raise AssertionError('it was not told, but waited in vain: ' + how)
        if self.kind.prompt and ms > PROMPT_S * 1000:
            print('late: %.0f ms, %s: %s' % (ms, way, self.text()), flush=True)

    def restart(self, side):
        time.sleep(self.random.random())
        self.pair.daemons[side].start()
        self.pair.wait_link()

    def run(self):
        kind = self.kind
        some = kind.victim == 'some'
        server = self.pair.server(self.server_program, kind.sides[0], self.everywhere)
        clients = [self.call(server.port, kind.links, 'hold' if some else 'churn') for _ in range(5 if some else 1)]
        self.await_moment(server, clients)
        survivors = self.kill(server, clients)
        dead_side = None if 'daemon' not in kind.victim else kind.sides[0 if kind.victim.startswith('server') else 1]
        for p in survivors:
            p.device_dead = kind.sides[0 if p is server else 1] == dead_side
        for p in sorted(survivors, key=lambda p: not p.device_dead):
            if dead_side is not None and not p.device_dead and not kind.away:
                self.restart(dead_side)
                dead_side = None
            self.learns(p, 30 if some else 0)
        for client in clients[2:]:
            client.finish()
        if server in survivors and not server.device_dead:
            server.finish()
        if dead_side is not None:
            self.restart(dead_side)
        self.again(server.port)
        self.pair.end_round()
        self.pair.nothing_left()
        kind.rounds += 1

    def again(self, port):
        """The port is free at once, and a client connects to the new listener."""
        program = self.random.choice(self.pair.options.programs)
        server = self.pair.server(program, self.kind.sides[0], self.everywhere, port)
        client = self.call(port, 1, 'once')
        client.ended()
        if client.learned(0):
            client.fail('it was not connected')
        server.finish()


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def row(name, rounds, times, rest):
    if not times:
        return '%-22s %6s %5d' % (name, rounds, 0)
    return '%-22s %6s %5d  %9.1f %9.1f %9.1f  %s' % (
        name, rounds, len(times), percentile(times, 0.5), percentile(times, 0.99), max(times), rest)


def table(all_kinds):
    print('%-22s %6s %5s  %9s %9s %9s  %s' % ('killed', 'rounds', 'ends', 'p50 ms', 'p99 ms', 'max ms', ''))
    for kind in all_kinds:
        over = sum(ms > PROMPT_S * 1000 for ms in kind.times)
        print(row(kind.name, kind.rounds, kind.times,
                  ('%d over %d s' % (over, PROMPT_S) if kind.prompt else '')
                  + (', %d survivors had no connection' % kind.nothing if kind.nothing else '')))
        for way, times in sorted(kind.ways.items()):
            print(row('    ' + way, '', times, ''))


def work(options, place, number, rounds, failures):
    pair = Pair(options, place, number)
    try:
        while not failures:
            try:
                each = rounds.get_nowait()
            except queue.Empty:
                return
            each = Round(pair, *each)
            begun = time.monotonic()
            try:
                each.run()
            except BaseException:
                failures.append(each.text() + '\n' + traceback.format_exc()
                                + '\n'.join('-- %s\n%s' % (p.name, p.said()) for p in pair.programs))
                raise
            if options.verbose:
                print('%5.1f s  %s' % (time.monotonic() - begun, each.text()), flush=True)
    finally:
        pair.close()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=os.path.abspath, required=True)
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--away', type=int, default=0, help='rounds whose daemon stays away, 80 s each')
    parser.add_argument('--jobs', type=int, default=1, help='pairs of daemons at once')
    parser.add_argument('--seed', type=int, default=1, help='number of the first round')
    parser.add_argument('--kind', help='rounds of this kind only')
    parser.add_argument('--verbose', action='store_true', help='a line for each round')
    parser.add_argument('programs', nargs='+', type=os.path.abspath)
    return parser.parse_args()


def main():
    options = arguments()
    all_kinds = [kind for kind in kinds() if options.kind in (None, kind.name)]
    rounds, failures, away = queue.Queue(), [], away_kinds()
    for n in range(options.away):
        rounds.put((away[n % len(away)], options.seed + n))
    for n in range(options.rounds):
        rounds.put((all_kinds[n % len(all_kinds)], options.seed + n))
    all_kinds += away if options.away else []
    with folder() as place:
        workers = [threading.Thread(target=work, args=(options, place, number, rounds, failures))
                   for number in range(options.jobs)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    table(all_kinds)
    print('\n'.join(failures))
    done = sum(kind.rounds for kind in all_kinds)
    print('%d of %d rounds' % (done, options.rounds + options.away))
    return 0 if done == options.rounds + options.away and not failures else 1


if __name__ == '__main__':
    sys.exit(main())
