#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-run --sysfs: devices as files, for which programs and in which way.

test_sysfs.py SOFTHCAD FOLDER-OF-LIBIBVERBS FOLDER-OF-PROGRAMS PROGRAM [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import time

import tools
from daemon import folder

PROGRAMS, LOOKS = [os.path.abspath(word) for word in sys.argv[3:5]]
del sys.argv[3:5]
SCRIPT = os.path.join(PROGRAMS, 'softhca-run')
CTL = os.path.join(PROGRAMS, 'softhca-ctl')
CONTAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'container.py')
PYTHON = shutil.which('python3', path='/usr/bin') or sys.executable  # one that all users may run
NOBODY = 65534
DEVICE = '/sys/class/infiniband/%s/'
# Files that ibstat, UCX, libfabric, Open MPI, NCCL and node_exporter read, and their form
FILES = {
    'node_type': r'1: CA', 'node_desc': r'softhca', 'hca_type': r'softhca', 'board_id': r'softhca',
    'fw_ver': r'\d+\.\d+\.\d+', 'hw_rev': r'[0-9a-f]+', 'node_guid': r'(?:[0-9a-f]{4}:?){4}',
    'sys_image_guid': r'(?:[0-9a-f]{4}:?){4}', 'ports/1/state': r'4: ACTIVE',
    'ports/1/phys_state': r'5: LinkUp', 'ports/1/rate': r'[\d.]+ Gb/sec',
    'ports/1/link_layer': r'Ethernet', 'ports/1/cap_mask': r'0x[0-9a-f]{8}', 'ports/1/lid': r'0x0',
    'ports/1/lid_mask_count': r'0', 'ports/1/sm_lid': r'0x0', 'ports/1/sm_sl': r'0',
    'ports/1/gids/0': r'(?:[0-9a-f]{4}:?){8}', 'ports/1/gid_attrs/types/0': r'RoCE v2',
    'ports/1/pkeys/0': r'0xffff', 'ports/1/counters/port_rcv_data': r'\d+',
    'ports/1/counters/port_xmit_packets': r'\d+', 'ports/1/counters/symbol_error': r'0',
    'ports/1/hw_counters/rdma_sends': r'\d+', 'ports/1/hw_counters/out_of_sequence': r'\d+',
    'ports/1/hw_counters/lifespan': r'\d+', 'device/vendor': r'0x[0-9a-f]{4}',
    'device/device': r'0x[0-9a-f]{4}', 'device/class': r'0x020000', 'device/numa_node': r'-1',
    'device/local_cpus': r'[0-9a-f,]+', 'device/local_cpulist': r'0(?:-\d+)?',
    'device/infiniband_verbs/uverbs0/ibdev': None,
}


class Trees(tools.Tools):

    def trees(self):
        return [os.path.join(top, name) for top, names, _ in os.walk(self.place) for name in names
                if name.startswith('sysfs.')]

    def wait_gone(self):
        deadline = time.monotonic() + tools.TIMEOUT_S
        while self.trees():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


class Sysfs(Trees):
    """The daemon of this user."""
    prefix = ()
    options = '--own', '--sysfs=preload'
    name = 'own'

    def setUp(self):
        context = folder()
        self.place = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.addCleanup(self.wait_gone)
        probe = self.begin(0, *self.prefix, SCRIPT, '--help')
        if probe.wait(tools.TIMEOUT_S) != 0:
            self.skipTest('an ordinary user cannot read this build: ' + probe.stdout.read())

    def environment(self, side, **more):
        return {**os.environ, 'XDG_RUNTIME_DIR': self.place, 'SOFTHCA_DEVICE': '',
                'SOFTHCA_DIRECTORY': self.place, **more}

    def start_script(self, *words, **more):
        return self.begin(0, *self.prefix, SCRIPT, *self.options, *words, **more)

    def run_script(self, *words, status=0, **more):
        return self.finish(self.start_script(*words, **more), status)

    def test_files(self):
        said = self.run_script('sh', '-c', 'cd %s; grep -r "" %s' %
                               (DEVICE % self.name, ' '.join(FILES)))
        found = dict(re.findall(r'^([^:]+):(.*)$', said, re.M))
        for file, form in FILES.items():
            self.assertIn(file, found, said)
            self.assertRegex(found[file], '^%s$' % (form or self.name))
        said = self.run_script('sh', '-c', 'cat /sys/class/infiniband_verbs/abi_version '
                               '/sys/class/infiniband_mad/abi_version; ls -l %s' % DEVICE % self.name)
        self.assertEqual(said.split('\n')[:2], ['6', '5'])
        self.assertNotIn('No such', said)

    def test_functions(self):
        """Every function of the C library that takes a path."""
        said = self.run_script(LOOKS, self.name)
        self.assertRegex(said, r'^[4-6]\d tried, 0 failed\n$')

    def test_python(self):
        said = self.run_script(PYTHON, '-c', '''
import glob, os, pathlib
print(sorted(os.listdir('/sys/class/infiniband')))
print(sorted(e.name for e in os.scandir('/dev/infiniband') if e.name[:6] == 'uverbs')[:1])
print(pathlib.Path('/sys/class/infiniband/%s').resolve())
print(glob.glob('/sys/class/infiniband/*/ports/*/state'))
''' % self.name).split('\n')
        self.assertIn(self.name, said[0])
        self.assertEqual(said[1], "['uverbs0']")
        self.assertIn('/devices/virtual/softhca/%s/infiniband/%s' % (self.name, self.name), said[2])
        self.assertIn(self.name, said[3])

    def test_ibstat(self):
        self.tool('ibstat')
        said = self.run_script('sh', '-c', 'ibstat && ibv_devices')
        self.assertIn("CA '%s'" % self.name, said)
        self.assertIn('State: Active', said)
        self.assertIn('Capability mask: 0x04010000', said)
        self.assertIn('Link layer: Ethernet', said)
        guid = re.search(r'Node GUID: 0x(\w+)', said).group(1)
        self.assertRegex(said, r'\b%s\s+%s\b' % (self.name, guid))

    def test_gone(self):
        """Files are there as long as the program, and no longer."""
        first = self.start_script('sh', '-c', 'echo up; exec sleep 1000')
        self.assertEqual(first.stdout.readline(), 'up\n')
        self.assertEqual(len(self.trees()), 1)
        first.kill()
        first.wait()
        self.wait_gone()

    def test_outside(self):
        self.run_script('true')
        self.assertFalse(os.path.exists(DEVICE % self.name))

    def test_blank(self):
        """Paths that separate words elsewhere."""
        place = os.path.join(self.place, 'a b,c:d')
        os.mkdir(place, mode=0o700)
        if os.geteuid() == 0 and self.prefix:
            os.chown(place, NOBODY, NOBODY)
        said = self.run_script('cat', DEVICE % self.name + 'ports/1/state', XDG_RUNTIME_DIR=place)
        self.assertEqual(said, '4: ACTIVE\n')


class Preloaded(Sysfs):

    def test_live(self):
        """Another program sees the counters of a program's frames."""
        watch = self.start_script('sh', '-c', '''
echo up
until [ "$(head -n 1 /sys/class/infiniband/own/ports/1/hw_counters/rdma_sends)" -ge 200 ]; do sleep 0.1; done
echo moved''')
        self.assertEqual(watch.stdout.readline(), 'up\n')
        port = tools.free_port()
        words = 'ibv_rc_pingpong', '-g', '1', '-n', '100', '-p', str(port)
        server = self.start_script(*words)
        tools.wait_listening(port, server)
        self.run_script(*words, '127.0.0.1')
        self.finish(server)
        self.assertEqual(self.finish(watch), 'moved\n')


class Container(Sysfs):
    """An ordinary user where nothing is allowed."""
    prefix = sys.executable, CONTAINER
    options = '--own', '--sysfs'


class Mounted(Sysfs):
    options = '--own', '--sysfs=mount'

    def setUp(self):
        super().setUp()
        probe = self.start_script('true')
        if probe.wait(tools.TIMEOUT_S) != 0:
            self.skipTest(probe.stdout.read())

    def test_static(self):
        """A program that the C library's functions do not lead."""
        said = self.run_script('env', 'LD_PRELOAD=', 'cat', DEVICE % 'own' + 'ports/1/state')
        self.assertEqual(said, '4: ACTIVE\n')

    def test_exporter(self):
        if shutil.which('prometheus-node-exporter') is None or shutil.which('curl') is None:
            self.skipTest('packages prometheus-node-exporter and curl')
        port = tools.free_port()
        self.start_script('prometheus-node-exporter', '--collector.disable-defaults',
                          '--collector.infiniband', '--web.listen-address=127.0.0.1:%d' % port)
        said, deadline = '', time.monotonic() + tools.TIMEOUT_S
        while 'node_infiniband' not in said:
            self.assertLess(time.monotonic(), deadline)
            said = subprocess.run(['curl', '-s', 'http://127.0.0.1:%d/metrics' % port],
                                  stdout=subprocess.PIPE, encoding='utf-8').stdout
            time.sleep(0.05)
        self.assertIn('node_infiniband_state_id{device="own",port="1"} 4', said)
        self.assertIn('node_infiniband_port_data_received_bytes_total{device="own",port="1"}', said)


class Ordinary(Mounted):
    """As another user: in a user namespace. Programs that read the files are those of Mounted."""
    test_functions = test_python = test_ibstat = test_exporter = None
    prefix = ('setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups') \
        if os.geteuid() == 0 else ()


class Embedded(Sysfs):
    options = '--embed', '--sysfs'
    name = 'embed0'

    def test_live(self):
        """The program's own counters; it reads them while its device is open."""
        said = self.run_script(PYTHON, '-c', '''
import ctypes
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
context = verbs.ibv_open_device(ctypes.c_void_p(verbs.ibv_get_device_list(None)[0]))
read = lambda: int(open('/sys/class/infiniband/embed0/ports/1/hw_counters/hcr_commands').read())
before = read()
verbs.ibv_create_cq.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                                ctypes.c_int]
verbs.ibv_create_cq(context, 10, None, None, 0)
print(read() > before)
''')
        self.assertEqual(said, 'True\n')


class Two(Trees):
    """Daemons that others have started."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.wait_gone)

    def environment(self, side, **more):
        return super().environment(side, XDG_RUNTIME_DIR=self.place, **more)

    def test_two(self):
        words = [SCRIPT, '--directory', self.place, '--sysfs=preload']
        for name in [d.name for d in self.daemons]:
            said = self.finish(self.begin(0, *words, 'cat', DEVICE % name + 'ports/1/gids/1',
                                          SOFTHCA_DEVICE=''))
            self.assertRegex(said, r'^0000:0000:0000:0000:0000:ffff:0a42:000[12]\n')
        said = self.finish(self.begin(0, *words, 'sh', '-c',
                                      'cat /sys/class/infiniband_verbs/uverbs*/ibdev',
                                      SOFTHCA_DEVICE=''))
        self.assertEqual(said.split(), [d.name for d in self.daemons])

    def test_chosen(self):
        words = [SCRIPT, '--device', self.daemons[1].socket, '--sysfs=preload']
        said = self.finish(self.begin(0, *words, 'ls', '/sys/class/infiniband'))
        self.assertEqual(said.split(), [self.daemons[1].name])

    def test_down(self):
        """A port that loses its link, while the program runs."""
        state = DEVICE % self.daemons[0].name + 'ports/1/state'
        watch = self.begin(0, SCRIPT, '--device', self.daemons[0].socket, '--sysfs=preload', 'sh', '-c',
                           'cat %s; until grep -q DOWN %s; do sleep 0.1; done; echo down' %
                           (state, state))
        self.assertEqual(watch.stdout.readline(), '4: ACTIVE\n')
        self.assertEqual(self.daemons[1].stop(), 0)
        self.assertEqual(self.finish(watch), 'down\n')


del Sysfs, Trees

if __name__ == '__main__':
    tools.main()
