#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhcad starts, says so, ends clean and leaves nothing; on every port a machine without NICs has.

test_daemon.py SOFTHCAD [unittest arguments]
"""
import errno
import mmap
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

from control import Control, TOKEN
from daemon import Daemon, Namespaces, READY_S, Skip, ended, folder, names_of_threads, write_config

BINARY = os.path.abspath(sys.argv[1])
ADDRESS = '10.66.0.1/24'
PEER = '10.66.0.2/24'


def name_of(part):
    return 'shd%d%s' % (os.getpid(), part)


def memory_mib(field):
    with open('/proc/meminfo', encoding='utf-8') as file:
        return int(re.search(r'^%s: +(\d+)' % field, file.read(), re.M).group(1)) >> 10


def hugepages():
    try:
        with open('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', encoding='utf-8') as file:
            return int(file.read())
    except OSError:
        return 0


class Case(unittest.TestCase):
    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def daemon(self, part, device, address=ADDRESS, *parts, **options):
        d = Daemon(BINARY, self.place, name_of(part), device, address, *parts, **options)
        self.addCleanup(d.close)
        return d

    def clean_end(self, d, number=signal.SIGTERM):
        self.assertEqual(d.stop(number), 0, d.text())
        text = d.text()
        self.assertNotIn('error', text.lower())
        self.assertEqual(d.runtime_dirs(), [])
        left = [name for name in os.listdir(self.place)
                if name in (d.name + '.sock', 'wire', 'vhost')]
        self.assertEqual(left, [], text)


class Ports(Case):
    def starts(self, part, device, *parts):
        d = self.daemon(part, device, ADDRESS, *parts).start()
        self.assertIn('MTU 4200, RoCE MTU 4096', d.text())
        self.clean_end(d)

    def test_null(self):
        self.starts('n', 'net_null0')

    def test_ring(self):
        self.starts('r', 'net_ring0')

    def test_memif_server(self):
        self.starts('m', 'net_memif0,role=server,socket=%s/wire' % self.place)

    def test_vhost(self):
        self.starts('v', 'net_vhost0,iface=%s/vhost' % self.place)

    def test_layouts(self):
        for layout, ub, workers in (('txrx', 'no', 2), ('full', 'no', 9), ('full', 'yes', 13)):
            d = self.daemon(layout[0], 'net_null0', ADDRESS, {'hca': {'layout': layout}},
                            {'ub': {'enable': ub}}).start()
            self.assertIn('layout %s, %d workers, congestion control none' % (layout, workers),
                          d.text())
            self.names_of_threads(d, workers)
            self.clean_end(d)

    def names_of_threads(self, d, workers):
        """Each thread has a name; a new one has that of the process until it runs."""
        expected = {'softhcad'} | {'hca-worker-%d' % i for i in range(workers)}
        others = {'hca-events', 'hca-addresses', 'hca-cm', 'hca-resolve', 'hca-listener', 'hca-session', 'hca-close',
                  'hca-close-watch', 'hca-agent', 'eal-intr-thread', 'telemetry-v2', 'dpdk-intr', 'dpdk-telemet-v2'}
        deadline = time.monotonic() + READY_S
        while True:
            names = names_of_threads(d.process.pid)
            if names.count('softhcad') == 1 and expected <= set(names) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        self.assertEqual(names.count('softhcad'), 1, names)
        self.assertLessEqual(expected, set(names))
        self.assertLessEqual(set(names), expected | others)

    def test_layouts_checked(self):
        """--check counts the workers that the daemon makes."""
        path = os.path.join(self.place, 'workers.conf')
        cpu = str(min(os.sched_getaffinity(0)))
        for layout, ub, workers in (('txrx', 'yes', 2), ('full', 'no', 9), ('full', 'yes', 13)):
            write_config(path, {'port': {'device': 'net_null0'}, 'addresses': {'address': '192.0.2.1/24'},
                                'hca': {'layout': layout}, 'ub': {'enable': ub}})
            run = subprocess.run(['taskset', '-c', cpu, BINARY, '-c', path, '--check'],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                                 timeout=READY_S, check=False)
            self.assertIn('layout: %d workers take turns on 1 CPUs' % workers, run.stdout)

    def test_one_cpu(self):
        cpu = min(os.sched_getaffinity(0))
        d = self.daemon('c', 'net_null0', ADDRESS, {'hca': {'lcores': cpu}}).start()
        self.come_to(lambda: {cpu} in self.cpus_of_threads(d), True)
        self.clean_end(d)

    def cpus_of_threads(self, d):
        return [os.sched_getaffinity(task) for task in sorted(map(int, os.listdir('/proc/%d/task' % d.process.pid)))]

    def come_to(self, value, expected):
        """Threads choose their CPUs when they begin, which may be after the daemon is ready."""
        deadline = time.monotonic() + READY_S
        while value() != expected and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(value(), expected)

    def test_two_cpus(self):
        """Workers of layout full share two CPUs as the stages of layout txrx do."""
        cpus = sorted(os.sched_getaffinity(0))[:2]
        if len(cpus) < 2:
            self.skipTest('one CPU')
        d = self.daemon('t', 'net_null0', ADDRESS, {'hca': {'layout': 'full', 'lcores': '%d,%d' % tuple(cpus)}}).start()

        def workers():
            return [next(iter(each)) for each in self.cpus_of_threads(d) if len(each) == 1]
        self.come_to(lambda: [cpus.index(cpu) for cpu in workers()[-9:]], [0, 0, 0, 1, 1, 1, 1, 0, 0])
        self.clean_end(d)


class Life(Case):
    def test_signals(self):
        d = self.daemon('i', 'net_null0').start()
        d.process.send_signal(signal.SIGHUP)
        d.wait_log('SIGHUP ignored')
        self.clean_end(d, signal.SIGINT)

    def test_notify(self):
        d = self.daemon('w', 'net_null0').start(env={'WATCHDOG_USEC': '400000'})
        d.wait_for('WATCHDOG=1')
        d.wait_for('WATCHDOG=1')
        d.process.send_signal(signal.SIGTERM)
        d.wait_for('STOPPING=1')
        self.clean_end(d)

    def test_bad_file(self):
        path = os.path.join(self.place, 'bad.conf')
        write_config(path, {'port': {'device': 'net_null0', 'mtuu': 5}, 'hca': {'layout': 'x', 'congestion': 'bbr'}})
        for words in ((), ('--check',)):
            run = subprocess.run([BINARY, '-c', path] + list(words), stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, encoding='utf-8', timeout=READY_S, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn('%s:3: mtuu: no such key in [port], did you mean "mtu"?' % path,
                          run.stderr)
            self.assertIn('%s:5: layout: expected rtc, txrx or full, found "x"' % path, run.stderr)
            self.assertRegex(run.stderr, re.escape(path) +
                             r':6: congestion: expected one of: none( \w+)*, found "bbr"')

    def test_command_line(self):
        for words, status in ((['--help'], 0), (['--version'], 0), (['--nonsense'], 2),
                              (['word'], 2), (['-c', '/no/such/file'], 2)):
            run = subprocess.run([BINARY] + words, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                 timeout=READY_S, check=False)
            self.assertEqual(run.returncode, status, words)

    def test_device_errors(self):
        """Exit status 1 and a sentence that helps."""
        busy = self.daemon('b', 'net_memif0,role=server,socket=%s/wire' % self.place).start()
        for device, words in (
                ('net_af_packet0,iface=nosuch0', 'there is no interface nosuch0'),
                ('net_nosuch0', 'net_nosuch0'),
                ('net_memif0,role=server', 'needs socket=/PATH'),
                ('net_memif0,role=server,socket=%s/wire' % self.place, 'another process listens'),
                ('0000:ff:1f.7', 'dpdk-devbind.py --status')):
            d = self.daemon('e', device)
            d.start(wait=False)
            self.assertEqual(ended(d.process), 1, d.text())
            self.assertIn(words, d.text())
        self.clean_end(busy)

    def test_killed_before(self):
        """A socket file of a daemon that was killed is no obstacle."""
        device = 'net_memif0,role=server,socket=%s/wire' % self.place
        first = self.daemon('k', device).start()
        first.stop(signal.SIGKILL)
        self.assertTrue(os.path.exists(os.path.join(self.place, 'wire')))
        self.assertTrue(os.path.exists(first.socket))
        self.clean_end(self.daemon('k', device).start())

    def test_wire_is_private(self):
        """A process that may connect to memif's socket is the other end of the wire: other users may not,
        with any umask."""
        path = os.path.join(self.place, 'wire')
        device = 'net_memif0,role=server,socket=' + path
        mask = os.umask(0)
        try:
            for part, keys, mode in (('p', {}, 0o600), ('q', {'socket_mode': '0660'}, 0o660),
                                     ('r', {'socket_mode': '0666'}, 0o666)):
                d = self.daemon(part, device, ADDRESS, {'port': keys}).start()
                self.assertEqual(os.stat(path).st_mode & 0o777, mode)
                if mode & 6:
                    self.assertIn('every user of this machine may connect', d.text())
                else:
                    self.assertIn('the process that connects to %s (mode %04o)' % (path, mode), d.text())
                if part == 'p' and os.geteuid() == 0:
                    self.refuses_strangers(path)
                self.clean_end(d)
        finally:
            os.umask(mask)

    def refuses_strangers(self, path):
        user = pwd.getpwnam('nobody')
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(user.pw_gid)
                os.setuid(user.pw_uid)
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                    s.connect(path)
            except PermissionError:
                status = 7
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)

    def test_end_among_strangers(self):
        """Peers that come and leave, before they were greeted or later, end no daemon; nor when it ends."""
        path = os.path.join(self.place, 'wire')
        for turn in range(6):
            d = self.daemon('g%d' % turn, 'net_memif0,role=server,socket=' + path).start()
            over = threading.Event()

            def visit(patient, over=over):
                while not over.is_set():
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                        s.settimeout(READY_S)
                        try:
                            s.connect(path)
                            if patient:
                                s.recv(256)
                        except OSError:
                            time.sleep(0.001)

            visitors = [threading.Thread(target=visit, args=(patient,)) for patient in (0, 1)]
            for each in visitors:
                each.start()
            time.sleep(0.1)
            try:
                self.clean_end(d)
            finally:
                over.set()
                for each in visitors:
                    each.join()

    def test_end_of_a_namesake(self):
        """A daemon of the same name that ends removes the runtime folder if it is empty, at any time."""
        place = '/var/run' if os.getuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
        ended_now = threading.Event()

        def remove():
            while not ended_now.is_set():
                try:
                    os.rmdir(os.path.join(place, 'dpdk', name_of('n')))
                except OSError:
                    pass

        thread = threading.Thread(target=remove)
        thread.start()
        try:
            d = self.daemon('n', 'net_null0').start()
        finally:
            ended_now.set()
            thread.join()
        self.assertIsNotNone(d.ask('/softhca/usage'))
        self.clean_end(d)

    def test_socket_of_another(self):
        """A daemon removes its own socket at the end, not one that another process has put there."""
        first = self.daemon('g', 'net_null0').start()
        os.rename(first.socket, first.socket + '.aside')
        second = self.daemon('h', 'net_null0', ADDRESS, {'control': {'socket': first.socket}})
        second.start()
        self.assertEqual(first.stop(), 0, first.text())
        self.assertTrue(os.path.exists(first.socket))
        self.assertEqual(second.stop(), 0, second.text())
        self.assertFalse(os.path.exists(first.socket))

    def test_folder_is_made(self):
        device = 'net_memif0,role=server,socket=%s/new/wire' % self.place
        self.clean_end(self.daemon('f', device).start())
        self.assertEqual(os.listdir(os.path.join(self.place, 'new')), [])

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest('this is an ordinary user already: the other tests show it')
        try:
            user = pwd.getpwnam('nobody').pw_uid
        except KeyError:
            self.skipTest('no user nobody')
        for part, device in (('u', 'net_ring0'),
                             ('x', 'net_memif0,role=server,socket=%s/wire' % self.place)):
            d = self.daemon(part, device, user=user)
            # the build may be where only root can go
            d.command[-3] = shutil.copy(BINARY, self.place)
            os.chmod(d.command[-3], 0o755)
            d.start()
            with open('/proc/%d/status' % d.process.pid, encoding='utf-8') as file:
                self.assertIn('\nUid:\t%d\t' % user, file.read())
            self.clean_end(d)


class Identity(Case):
    def identity(self, part, *parts):
        """GUID, firmware version; vendor, part, hardware version."""
        d = self.daemon(part, 'net_null0', ADDRESS, *parts).start()
        client = Control(d.socket)
        info = client.info()
        client.close()
        guid, firmware = struct.unpack_from('=QQ', info)
        with open(d.socket + '.device', encoding='utf-8') as file:
            self.assertEqual(file.read(), 'guid %016x\n' % guid)
        self.clean_end(d)
        self.assertFalse(os.path.exists(d.socket + '.device'))
        return firmware, *struct.unpack_from('=3I', info, len(info) - 20 - TOKEN)

    def test_configured(self):
        """Queries of the device return the configured values."""
        known = {'hca': {'vendor_id': '0x02c9', 'vendor_part_id': 4119, 'hw_ver': 2,
                         'fw_ver': '16.35.2000'}}
        self.assertEqual(self.identity('q', known), (16 << 32 | 35 << 16 | 2000, 0x02c9, 4119, 2))

    def test_default(self):
        """The default vendor is a locally administered OUI."""
        _, vendor, part, hardware = self.identity('r')
        self.assertEqual(vendor >> 16 & 3, 2)
        self.assertEqual((part, hardware), (1, 1))


class Releases(Case):
    """Clients of other releases: docs/reference/versions.md"""

    def test_log_and_list(self):
        d = self.daemon('v', 'net_null0', ADDRESS).start()
        clients = [Control(d.socket) for _ in range(2)]
        today = Control(d.socket, 2)
        release = today.identify('9.9.9; rm -rf')
        later = Control(d.socket, 40)
        self.addCleanup(lambda: [client.close() for client in clients + [today, later]])
        self.assertRegex(release, r'^\d+\.\d+\.\d+$')
        number, reason = later.refused(999)
        self.assertEqual(number, -errno.EOPNOTSUPP)
        self.assertIn('has no operation 999: upgrade it', reason)
        self.assertEqual(later.refused(998)[0], -errno.EOPNOTSUPP)
        # each version once, and each client that sends an unknown request
        d.wait_log('its libsofthca is older than this daemon (version 7.0 ')
        d.wait_log('its libsofthca is newer than this daemon (version 7.40 ')
        d.wait_log('has no operation 999')
        said = d.text()
        self.assertEqual(said.count('its libsofthca is'), 2, said)
        self.assertNotIn('has no operation 998', said)
        listed = d.ask('/softhca/clients,%s' % d.name)
        self.assertEqual(sorted(client['release'] for client in listed.values()), ['', '', '', '9.9.9'])
        self.assertEqual(d.ask('/softhca/ipc')['refused_operation'], 2)
        for client in clients + [today, later]:
            client.close()
        self.clean_end(d)


class Limits(Case):
    def leaves_descriptors(self, part, take):
        """Clients that take all they get leave the others theirs."""
        d = self.daemon(part, 'net_null0', ADDRESS,
                        {'limits': {'clients': 8, 'clients_per_user': 8}},
                        prefix=('prlimit', '--nofile=300:300')).start()
        clients = [Control(d.socket) for _ in range(4)]
        self.addCleanup(lambda: [client.close() for client in clients])
        for client in clients:
            taken = 0
            while take(client) == 0:
                taken += 1
                self.assertLess(taken, 300)
            self.assertGreater(taken, 1)
        for _ in range(4):
            clients.append(Control(d.socket))
            self.assertEqual(clients[-1].create_channel(), 0)
            self.assertEqual(clients[-1].open_xrcd(), 0)
        for client in clients:
            client.close()
        self.clean_end(d)

    def test_event_channels(self):
        self.leaves_descriptors('o', Control.create_channel)

    def test_files_of_xrc_domains(self):
        self.leaves_descriptors('x', Control.open_xrcd)

    def test_soft_limit(self):
        """The daemon raises its limit of open files to the maximum."""
        d = self.daemon('p', 'net_null0', prefix=('prlimit', '--nofile=64:4096')).start()
        with open('/proc/%d/limits' % d.process.pid, encoding='utf-8') as file:
            self.assertRegex(file.read(), r'Max open files +4096 +4096')
        self.clean_end(d)

    def test_few_files(self):
        d = self.daemon('w', 'net_null0', prefix=('prlimit', '--nofile=64:64')).start()
        self.assertIn('warning: 64 files may be open', d.text())
        self.clean_end(d)

    def test_closed_standard_files(self):
        """A file that the daemon opens does not become its standard error."""
        d = self.daemon('z', 'net_null0', ADDRESS,
                        prefix=('sh', '-c', 'exec "$@" 0<&- 1>&- 2>&-', 'sh')).start()
        for number in range(3):
            self.assertEqual(os.readlink('/proc/%d/fd/%d' % (d.process.pid, number)), '/dev/null')
        self.clean_end(d)

    def test_no_such_cpu(self):
        d = self.daemon('q', 'net_null0', ADDRESS, {'hca': {'lcores': '%d,4000' % min(
            os.sched_getaffinity(0))}})
        d.start(wait=False)
        self.assertEqual(ended(d.process), 1, d.text())
        self.assertIn('[hca] lcores: CPU 4000 cannot be used', d.text())
        self.assertEqual(d.runtime_dirs(), [])

    def test_failed_start_leaves_nothing(self):
        # to look for leaks takes more files than these
        asan = 'ASAN_OPTIONS=%s:detect_leaks=0' % os.environ.get('ASAN_OPTIONS', '')
        d = self.daemon('e', 'net_null0', prefix=('env', asan, 'prlimit', '--nofile=8:8'))
        d.start(wait=False)
        self.assertEqual(ended(d.process), 1, d.text())
        self.assertEqual(d.runtime_dirs(), [])

    def check(self, memory, *prefix):
        """Exit status and words of --check."""
        path = os.path.join(self.place, 'machine.conf')
        write_config(path, {'port': {'device': 'net_null0'}, 'addresses': {'address': '192.0.2.1/24'},
                            'memory': memory})
        run = subprocess.run([*prefix, BINARY, '-c', path, '--check'], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, encoding='utf-8', timeout=READY_S, check=False)
        return run.returncode, run.stdout

    def says(self, status, words, memory, *prefix):
        got, said = self.check(memory, *prefix)
        self.assertEqual(got, status, said)
        self.assertRegex(said, words)
        self.assertEqual(said.endswith(': good\n'), status == 0, said)

    def beyond_free(self):
        """MiB for which there are not enough hugepages, whatever others do with theirs."""
        size = max(2 * (hugepages() + 1), 1024)
        if size > memory_mib('MemTotal') - 1024:
            self.skipTest('hugepages are nearly all of the memory')
        return size

    def test_check_hugepages(self):
        """Pages may become free until the start: a warning."""
        self.says(0, r"warning: hugepages: must: \d+ free pages of 2 MiB, \d+ are needed; run 'echo ",
                  {'hugepages': 'must', 'size_mb': self.beyond_free()})
        self.says(0, r'warning: hugepages: \d+ of 2 MiB are free, \d+ are needed: ordinary memory',
                  {'hugepages': 'auto', 'size_mb': self.beyond_free()})

    def test_check_memory(self):
        """More than there is never works; more than is available at present may."""
        most = memory_mib('MemTotal') + memory_mib('SwapTotal')
        for use in 'never', 'auto':
            self.says(2, 'size_mb: expected at most %d, the memory of this machine, found %d' % (
                most, 1 << 20), {'hugepages': use, 'size_mb': 1 << 20})
        self.says(2, 'size_mb: expected at most', {'hugepages': 'must', 'size_mb': 1 << 20})
        available = memory_mib('MemAvailable') + memory_mib('SwapFree')
        if available < most - 2:
            self.says(0, 'warning: size_mb: %d MiB are taken at the start, \\d+ are available' % (most - 1),
                      {'hugepages': 'never', 'size_mb': most - 1})

    def test_check_pools(self):
        """Ordinary memory is all there is from the start on."""
        self.says(2, 'size_mb: expected at least', {'hugepages': 'never', 'size_mb': 64})
        self.says(0, 'warning: size_mb: expected at least', {'hugepages': 'auto', 'size_mb': 64})

    def test_check_files(self):
        self.says(0, r'warning: clients: 256 files may be open here \(ulimit -Hn\), 256 clients may need \d+',
                  {'hugepages': 'never'}, 'prlimit', '--nofile=256:256')

    def test_advice_counts_hugepages_in_use(self):
        """After it the needed number is free, in addition to those of others."""
        try:
            with open('/proc/sys/vm/nr_hugepages', encoding='utf-8') as file:
                total = int(file.read())
            with mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000) as own:
                own[0] = own[2 << 20] = 1
                d = self.daemon('h', 'net_null0', ADDRESS,
                                {'memory': {'hugepages': 'must', 'size_mb': self.beyond_free()}})
                d.start(wait=False)
                self.assertEqual(ended(d.process), 1, d.text())
        except OSError as error:
            self.skipTest('hugepages: %s' % error)
        said = re.search(r"must: (\d+) free pages of 2 MiB, (\d+) are needed; run 'echo (\d+) >",
                         d.text())
        have, need, echo = (int(n) for n in said.groups())
        self.assertGreater(need, total)
        self.assertEqual(echo, need + total - have)

    def test_configuration_is_a_file(self):
        for path, words in (('/dev/zero', 'expected a file, found a pipe or device'),
                            (self.place, 'expected a file, found a folder')):
            run = subprocess.run([BINARY, '-c', path, '--check'], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, encoding='utf-8', timeout=READY_S, check=False)
            self.assertEqual((run.returncode, run.stderr), (2, '%s: %s\n' % (path, words)))


class OtherAnswers(Case):
    def test_arp(self):
        """An interface below a TAP must not answer for it with another MAC address."""
        try:
            spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(spaces.close)
        if not os.path.exists('/dev/net/tun'):
            self.skipTest('no /dev/net/tun')
        words = "run 'sysctl net.ipv4.conf.wire.arp_ignore=1'"
        kernel, mac = {'kernel': {'interface': 'tap'}}, {'port': {'mac': '02:00:00:66:00:01'}}
        for part, warned, parts in (('j', True, (kernel, mac)), ('k', False, (kernel,)),
                                    ('l', False, (mac,))):
            d = self.daemon(part, 'net_af_packet0,iface=wire', ADDRESS, *parts,
                            prefix=spaces.prefix(0)).start()
            self.assertEqual(words in d.text(), warned, d.text())
            self.clean_end(d)
        spaces.run(spaces.names[0], 'sysctl', '-q', '-w', 'net.ipv4.conf.wire.arp_ignore=1')
        d = self.daemon('m', 'net_af_packet0,iface=wire', ADDRESS, kernel, mac,
                        prefix=spaces.prefix(0)).start()
        self.assertNotIn(words, d.text())
        self.clean_end(d)


class Link(Case):
    def test_memif_any_order(self):
        """The client waits for the server, and finds it again after its death."""
        wire = 'socket=%s/wire' % self.place
        client = self.daemon('c', 'net_memif0,role=client,' + wire, PEER).start()
        client.wait_log('waits for its peer')
        server = self.daemon('s', 'net_memif0,role=server,' + wire).start()
        client.wait_log('link up')
        server.wait_log('link up')
        for turn in range(2, 4):
            server.stop(signal.SIGKILL)
            client.wait_log('link down', count=turn)
            server = self.daemon('s', 'net_memif0,role=server,' + wire).start()
            client.wait_log('link up', count=turn)
        ups = server.text().count('link up')
        client.stop(signal.SIGKILL)
        again = self.daemon('c', 'net_memif0,role=client,' + wire, PEER).start()
        server.wait_log('link up', count=ups + 1)
        self.assertEqual(again.stop(), 0)
        self.clean_end(server)

    def test_veth(self):
        try:
            spaces = Namespaces()
        except Skip as why:
            self.skipTest(str(why))
        self.addCleanup(spaces.close)
        a = self.daemon('a', 'net_af_packet0,iface=wire', ADDRESS, prefix=spaces.prefix(0)).start()
        b = self.daemon('b', 'net_af_packet0,iface=wire', PEER, prefix=spaces.prefix(1)).start()
        self.assertIn('MTU 4200, RoCE MTU 4096', a.text())
        spaces.run(spaces.names[1], 'ip', 'link', 'set', 'wire', 'down')
        a.wait_log('link down')
        b.wait_log('link down')
        spaces.run(spaces.names[1], 'ip', 'link', 'set', 'wire', 'up')
        a.wait_log('link up')
        b.wait_log('link up')
        self.clean_end(b)
        self.clean_end(a)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
