# SPDX-License-Identifier: BSD-3-Clause
"""The cases of tests/interop/verbs: programs of Debian's packages ibverbs-utils and perftest, with options.

A case has a name, a command, the place where it runs, and how its output is judged. Where:
  one        both programs on one daemon
  two        each on a daemon of its own
  known      the same, and the daemons have vendor and part IDs that are in perftest's list
  rxe        one on a daemon, the other on Linux rxe
  rxe-known  the same, and the daemon has such IDs
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../verbs'))
from tools import UNKNOWN, measured_rows, result_of_0  # noqa: E402

GID_LINK, GID_IPV4, GID_IPV6 = '0', '1', '2'
SERVICES = {
    'write': ('RC', 'UC', 'XRC'),
    'read': ('RC', 'XRC'),
    'send': ('RC', 'UC', 'UD', 'XRC'),
    'atomic': ('RC', 'XRC'),
}
KINDS = 'bw', 'lat'
PINGPONGS = 'rc', 'uc', 'ud', 'srq', 'xsrq'
NOT_RXE = 'ibv_xsrq_pingpong', 'XRC'  # rxe does not offer XRC
RXE_PROGRAMS = ('ibv_rc_pingpong', 'ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong') + tuple(
    'ib_%s_%s' % (program, kind) for program in SERVICES for kind in KINDS)
SECONDS = 120


class Case:
    short = False
    alone = False  # one program
    limit = SECONDS
    comparison = None  # the operation that softhca-perf measures for comparison

    def __init__(self, where, *command, role='client'):
        self.where = where
        self.role = role  # of our end, where the other is not
        self.command = command
        self.rxe = where.startswith('rxe')
        self.name = '%-16s %s' % (where + ' ' + role if self.rxe else where, ' '.join(command))

    def words(self):
        """The command as it is run."""
        return self.command

    def least_inline(self):
        """Requests that our end posts with inline data, at least."""
        return 0

    def judge(self, client, server):
        """Judges the output of both ends: (reason of failure or '', text for the table)"""
        raise NotImplementedError


class Single(Case):
    """A program that ends without a signal, and the output that it must have."""
    alone = short = True

    def __init__(self, where, wanted, *command):
        super().__init__(where, *command)
        self.wanted = wanted

    def judge(self, client, server):
        missing = [words for words in self.wanted if words not in client]
        return ('not said: ' + ', '.join(missing) if missing else '', '')


class Pingpong(Case):
    def words(self):
        gid = () if '-g' in self.command else ('-g', GID_IPV4)
        count = '300' if not self.rxe else '20' if LARGE in self.command else '100'
        return self.command + gid + ('-n', count)

    def judge(self, client, server):
        if 'xsrq' in self.command[0]:  # says no more
            return ('' if re.search('^success$', client, re.M) else 'no result', '')
        found = re.findall(r'(\d+) iters in [\d.]+ seconds = ([\d.]+) usec/iter', client)
        if not found:
            return 'no result', ''
        if 'invalid data' in client + server:
            return 'invalid data', ''
        return '', '%s us' % found[0][1]


class Perftest(Case):
    """Its output must have a result; with `comparison` the bandwidth is judged as well."""

    def count(self):
        """A multiple of the 100 requests of which perftest has one signalled, and of post lists. It takes each
        completion for 100: where the last one is of fewer, it has all it wants while some QPs have not sent
        everything, polls no more, and never ends (-q 64 -n 160 of Debian 12)."""
        if not self.rxe:
            return 400
        if '-a' in self.command:  # an emulated machine is slow
            return 32
        return 200 if '-l' in self.command else 100

    def words(self):
        gid = () if '-x' in self.command else ('-x', GID_IPV4)
        count = () if '-D' in self.command else ('-n', str(self.count()))
        return self.command + self.for_rxe() + ('-F',) + gid + count

    def for_rxe(self):
        """Of an emulated machine all QPs together must send within an ack timeout: half a second. Each end
        asks its device for as many READs and atomics at a time as the other's has, and rxe has more."""
        if not self.rxe:
            return ()
        asks = '-o' not in self.command and re.match('ib_(read|atomic)_', self.command[0])
        return ('-u', '17') + (('-o', '16') if asks else ()) + self.receives()

    def receives(self):
        """The receives of all QPs together must fit into a CQ of rxe: 32,767."""
        many = '512' in self.command and self.command[0].startswith('ib_send_')
        return ('-r', '32') if many else ()

    def least_inline(self):
        posts = self.role == 'client' or self.command[0].endswith('_lat')
        return self.count() if '-I' in self.command and posts else 0

    def judge(self, client, server):
        ours = client if self.role == 'client' else server
        rows = measured_rows(client)
        if not rows:
            return 'no result', ''
        for row in filter(result_of_0, rows):
            return 'a result of 0: %s' % (row,), ''
        if 'known' in self.where and not re.search(r'ibv_wr\* API +: ON', ours) and \
                'XRC' not in self.command:
            return 'not by ibv_wr_*', ''
        if rows[-1][3] == UNKNOWN:
            return '', '%d B: perftest had no clock' % rows[-1][0]
        if self.command[0].endswith('_lat'):
            return '', '%d B: %s us' % (rows[-1][0], typical(client, '-D' in self.command))
        unit = 'Gb/s' if '--report_gbits' in self.command else 'MiB/s'
        return '', '%d B: %.2f %s' % (rows[-1][0], rows[-1][3], unit)

    def megabits(self, said):
        """Bandwidth of the first row in Mb/s."""
        return measured_rows(said)[0][3] * 8 * 1.048576


def typical(said, by_time):
    """The typical latency in the last row; with -D, for which perftest prints no typical one, the average."""
    row = re.findall(r'^ \d+ +\d+ +[\d.]+.*$', said, re.M)[-1].split()
    return row[2 if by_time else 4]


# ---- options ----

def options_of(program, kind):
    """The options of a program on RC; the case without an option is not among them."""
    yield '-t', '16'
    yield '-m', '1024'
    yield '-D', '1'
    yield '-x', GID_IPV6
    if program != 'atomic':
        yield '-a',
        if program == 'send' or kind == 'bw':
            yield '-s', '1'
    if kind == 'bw':
        yield from ((('-q', n) for n in ('8', '64')))
        yield ('-q', '512', '-t', '4') + (() if program == 'atomic' else ('-s', '4096'))
        yield '-b',
        yield '-Q', '10'
        yield '-N',
        yield '--mr_per_qp', '-q', '4'
        yield '--report_gbits',
        if program != 'atomic':
            yield '-l', '8'
    if program in ('send', 'read'):
        yield '-e',
    if program == 'send':
        yield '--use-srq',
        if kind == 'bw':
            yield '--use-srq', '-q', '8'
    if program in ('read', 'atomic'):
        yield '-o', '4'
    if program == 'atomic':
        yield '-A', 'CMP_AND_SWAP'
        yield '-A', 'FETCH_AND_ADD'


LARGE = '1000000'
LOCAL = '-N', '-Q', '--report_gbits'  # options that the other end does not notice
SHORT_PINGPONGS = {('rc',), ('uc',), ('ud',), ('srq',), ('xsrq',), ('rc', '-e'), ('rc', '-s', LARGE)}
SHORT_OPTIONS = {
    ('write', 'bw'): (('-q', '64'), ('-l', '8'), ('-b',), ('-x', GID_IPV6)),
    ('send', 'bw'): (('-e',), ('--use-srq', '-q', '8')),
    ('read', 'lat'): (('-a',),),
}
SHORT_RXE = {
    ('rxe', 'client', 'ibv_rc_pingpong', '-g', GID_IPV6), ('rxe', 'server', 'ibv_ud_pingpong'),
    ('rxe', 'client', 'ib_write_bw', '-c', 'RC'), ('rxe', 'server', 'ib_read_bw', '-c', 'RC'),
    ('rxe', 'client', 'ib_atomic_lat', '-c', 'RC'), ('rxe', 'server', 'ib_send_lat', '-c', 'UD'),
    ('rxe-known', 'client', 'ib_send_bw', '-c', 'UC', '-I', '60', '-s', '32'),
}


def pingpongs(where):
    for kind in PINGPONGS:
        large = '2048' if kind == 'ud' else LARGE
        for options in ((), ('-e',), ('-s', '1'), ('-s', large), ('-g', GID_LINK), ('-g', GID_IPV6)):
            case = Pingpong(where, 'ibv_%s_pingpong' % kind, *options)
            case.short = where == 'two' and (kind,) + options in SHORT_PINGPONGS
            yield case


def measured(where):
    for program, services in SERVICES.items():
        for kind in KINDS:
            for service in services:
                for options in ((), *options_of(program, kind)) if service == 'RC' else ((),):
                    case = Perftest(where, 'ib_%s_%s' % (program, kind), '-c', service, *options)
                    case.short = where == 'two' and (
                        not options or options in SHORT_OPTIONS.get((program, kind), ()))
                    if where == 'two' and service == 'RC' and not options and kind == 'bw' and \
                            program != 'atomic':
                        case.comparison = program
                    yield case


def inline(where):
    """Inline data and ibv_wr_*, which perftest uses only where its list has the vendor and the part."""
    for program, services in SERVICES.items():
        for kind in KINDS:
            for service in services:
                small = () if program in ('read', 'atomic') else ('-I', '60', '-s', '32')
                case = Perftest(where, 'ib_%s_%s' % (program, kind), '-c', service, *small)
                case.short = (program, service) in (('write', 'RC'), ('send', 'UD'))
                yield case
    yield Perftest(where, 'ib_write_bw', '-c', 'RC', '-l', '8', '-I', '60', '-s', '32')
    yield Perftest(where, 'ib_send_bw', '-c', 'RC', '-q', '64', '-I', '60', '-s', '32')


def against_rxe():
    """The cases that rxe can run, with our end as client and as server."""
    for role in 'client', 'server':
        for cases, where in ((pingpongs, 'rxe'), (measured, 'rxe'), (inline, 'rxe-known')):
            for case in cases(where):
                if any(word in case.command for word in (*NOT_RXE, *LOCAL)):
                    continue
                case = type(case)(where, *case.command, role=role)
                case.short = (where, role, *case.command) in SHORT_RXE
                yield case


def all_cases():
    yield Single('two', ('node GUID',), 'ibv_devices')
    yield Single('two', ('PORT_ACTIVE', 'active_mtu:\t\t4096', 'RoCE v2', 'Ethernet'),
                 'ibv_devinfo', '-v')
    yield from pingpongs('two')
    yield from measured('two')
    yield from inline('known')
    yield from pingpongs('one')
    yield from measured('one')
    yield from against_rxe()
