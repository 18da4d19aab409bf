# SPDX-License-Identifier: BSD-3-Clause
"""What tests/interop/verbs runs: programs of Debian's packages ibverbs-utils and perftest, with options.

A case has a name, a command, the place where it runs, and how its output is judged. Where:
  one    both programs on one daemon
  two    each on a daemon of its own
  known  the same, and the daemons have vendor and part IDs that perftest knows
"""
import re

GID_IPV4, GID_IPV6 = '1', '2'  # 0 is the link-local address
SERVICES = {
    'write': ('RC', 'UC', 'XRC'),
    'read': ('RC', 'XRC'),
    'send': ('RC', 'UC', 'UD', 'XRC'),
    'atomic': ('RC', 'XRC'),
}
KINDS = 'bw', 'lat'
SECONDS = 120


class Case:
    short = False
    alone = False  # one program
    limit = SECONDS
    comparison = None  # what softhca-perf measures beside it

    def __init__(self, where, *command):
        self.where = where
        self.command = command
        self.name = '%-5s %s' % (where, ' '.join(command))

    def words(self):
        """The command as it is run."""
        return self.command

    def judge(self, said):
        """(reason of failure or '', what the table shows)"""
        raise NotImplementedError


class Single(Case):
    """A program that ends by itself, and what it must say."""
    alone = short = True

    def __init__(self, where, wanted, *command):
        super().__init__(where, *command)
        self.wanted = wanted

    def judge(self, said):
        missing = [words for words in self.wanted if words not in said]
        return ('not said: ' + ', '.join(missing) if missing else '', '')


class Pingpong(Case):
    def words(self):
        gid = () if '-g' in self.command else ('-g', GID_IPV4)
        count = () if '-n' in self.command else ('-n', '300')
        return self.command + gid + count

    def judge(self, said):
        if 'xsrq' in self.command[0]:  # says no more
            return ('' if re.search('^success$', said, re.M) else 'no result', '')
        found = re.findall(r'(\d+) iters in [\d.]+ seconds = ([\d.]+) usec/iter', said)
        if not found:
            return 'no result', ''
        if 'invalid data' in said:
            return 'invalid data', ''
        return '', '%s us' % found[0][1]


class Perftest(Case):
    """Its result must be there; with `comparison` the bandwidth is judged, too."""

    def words(self):
        gid = () if '-x' in self.command else ('-x', GID_IPV4)
        long = '-D' in self.command or '-n' in self.command
        count = () if long else ('-n', '320')  # of post lists, too
        return self.command + ('-F',) + gid + count

    def judge(self, said):
        rows = re.findall(r'^ (\d+) +(\d+) +([\d.]+) +([\d.]+)', said, re.M)
        if not rows:
            return 'no result', ''
        if any(float(row[3]) <= 0 for row in rows):
            return 'a result of 0: ' + ' '.join(rows[-1]), ''
        if self.where == 'known' and not re.search(r'ibv_wr\* API +: ON', said) and \
                'XRC' not in self.command:
            return 'not by ibv_wr_*', ''
        last = rows[-1]
        if self.command[0].endswith('_lat'):
            return '', '%s B: %s us' % (last[0], typical(said, '-D' in self.command))
        unit = 'Gb/s' if '--report_gbits' in self.command else 'MiB/s'
        return '', '%s B: %s %s' % (last[0], last[3], unit)

    def megabits(self, said):
        """Bandwidth of the first row in Mb/s."""
        row = re.search(r'^ (\d+) +(\d+) +([\d.]+) +([\d.]+)', said, re.M)
        return float(row.group(4)) * 8 * 1.048576


def typical(said, by_time):
    """Of the last row of a latency: the typical one; where only the time is given, the average."""
    row = re.findall(r'^ \d+ +\d+ +[\d.]+.*$', said, re.M)[-1].split()
    return row[2 if by_time else 4]


# ---- options ----

def options_of(program, kind):
    """Of a program on RC, besides none."""
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


SHORT_PINGPONGS = {('rc',), ('uc',), ('ud',), ('srq',), ('xsrq',), ('rc', '-e'), ('rc', '-s', '1000000')}
SHORT_OPTIONS = {
    ('write', 'bw'): (('-q', '64'), ('-l', '8'), ('-b',), ('-x', GID_IPV6)),
    ('send', 'bw'): (('-e',), ('--use-srq', '-q', '8')),
    ('read', 'lat'): (('-a',),),
}


def pingpongs(where):
    for kind in ('rc', 'uc', 'ud', 'srq', 'xsrq'):
        large = '2048' if kind == 'ud' else '1000000'
        for options in ((), ('-e',), ('-s', '1'), ('-s', large), ('-g', '0'), ('-g', GID_IPV6)):
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
    """Inline data and ibv_wr_*, which perftest uses only where it knows vendor and part."""
    for program, services in SERVICES.items():
        for kind in KINDS:
            for service in services:
                small = () if program in ('read', 'atomic') else ('-I', '60', '-s', '32')
                case = Perftest(where, 'ib_%s_%s' % (program, kind), '-c', service, *small)
                case.short = (program, service) in (('write', 'RC'), ('send', 'UD'))
                yield case
    yield Perftest(where, 'ib_write_bw', '-c', 'RC', '-l', '8', '-I', '60', '-s', '32')
    yield Perftest(where, 'ib_send_bw', '-c', 'RC', '-q', '64', '-I', '60', '-s', '32')


def all_cases():
    yield Single('two', ('node GUID',), 'ibv_devices')
    yield Single('two', ('PORT_ACTIVE', 'active_mtu:\t\t4096', 'RoCE v2', 'Ethernet'),
                 'ibv_devinfo', '-v')
    yield from pingpongs('two')
    yield from measured('two')
    yield from inline('known')
    yield from pingpongs('one')
    yield from measured('one')
