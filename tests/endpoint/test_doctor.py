#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""softhca-ctl doctor on machines made of files: each fault is named, with the command that mends it.

test_doctor.py SOFTHCA-CTL [unittest arguments]
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

CTL = os.path.abspath(sys.argv[1])
HUGE = 'sys/kernel/mm/hugepages/hugepages-2048kB/'
LIMITS = ('Limit                     Soft Limit           Hard Limit           Units\n'
          'Max open files            %s                 4096                 files\n'
          'Max locked memory         %s             unlimited            bytes\n')
GOOD = {
    HUGE + 'nr_hugepages': '512\n', HUGE + 'free_hugepages': '512\n',
    'proc/cpuinfo': 'flags\t\t: fpu sse4_2 pclmulqdq avx2 avx512f\n',
    'proc/mounts': 'proc /proc proc rw 0 0\n',
    'proc/self/limits': LIMITS % ('1024', 'unlimited'),
    'proc/net/udp': '  sl  local_address\n   0: 00000000:0044 00000000:0000 07\n',
    'sys/devices/system/cpu/online': '0-3\n', 'sys/devices/system/cpu/isolated': '\n',
    'sys/class/net/eth9/operstate': 'up\n', 'sys/class/net/eth9/mtu': '4200\n',
    'dev/net/tun': '',
}
CONFIG = {'hca': {}, 'port': {'device': 'net_af_packet0,iface=eth9'},
          'addresses': {'address': '10.0.0.1/24'}}


class Machine:
    def __init__(self, case, files=None, config=None, without=()):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in dict(GOOD, **(files or {})).items():
            if path not in without:
                self.write(path, text)
        if config is not None:
            self.write('etc/softhca/softhcad.conf', ''.join(
                '[%s]\n%s' % (section, ''.join('%s = %s\n' % pair for pair in keys.items()))
                for section, keys in config.items()))

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def doctor(self, *words):
        return subprocess.run([CTL, 'doctor', '--root', self.root] + list(words),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                              timeout=240, check=False)


def config(**sections):
    return {name: dict(CONFIG.get(name, {}), **sections.get(name, {}))
            for name in {**CONFIG, **sections}}


class Doctor(unittest.TestCase):
    def judged(self, machine, status):
        run = machine.doctor('--json')
        self.assertEqual((run.returncode, run.stderr), (status, ''), run.stdout)
        answer = json.loads(run.stdout)
        self.assertEqual(answer['failed'], sum(c['level'] == 'FAIL' for c in answer['checks']))
        self.assertEqual(answer['warned'], sum(c['level'] == 'warn' for c in answer['checks']))
        self.assertEqual(answer['failed'] != 0, status == 1)
        text = machine.doctor().stdout
        for check in answer['checks']:
            self.assertIn(check['text'], text)
            self.assertIn(check.get('fix', ''), text)
        return answer['checks']

    def finds(self, machine, level, name, text, fix=None):
        checks = self.judged(machine, 1 if level == 'FAIL' else 0)
        found = [c for c in checks if c['check'] == name and text in c['text']]
        self.assertEqual([c['level'] for c in found], [level], checks)
        if fix is not None:
            self.assertIn(fix, found[0]['fix'])
        # no other complaint
        others = [c for c in checks if c['level'] != 'ok' and c not in found and
                  c['check'] != 'rights']
        self.assertEqual(others, [])

    def test_healthy(self):
        checks = self.judged(Machine(self, config=config()), 0)
        self.assertEqual([c for c in checks if c['level'] != 'ok' and c['check'] != 'rights'], [])
        self.assertLessEqual({'configuration', 'hugepages', 'cpu', 'cores', 'memlock', 'port', 'mtu',
                              'rxe', 'gids'}, {c['check'] for c in checks})

    def test_configuration(self):
        self.finds(Machine(self), 'warn', 'configuration', 'cannot be read')
        self.finds(Machine(self, config={'hca': {}, 'addresses': CONFIG['addresses']}), 'FAIL',
                   'configuration', 'device: expected in [port], found none', '--check')
        self.finds(Machine(self, config=config(hca={'layout': 'rtx', 'seed': 'x'})), 'FAIL',
                   'configuration', '2 errors: ', '--check')
        self.finds(Machine(self, config=config(kernel={'interface': 'virtio'})), 'FAIL',
                   'configuration', '1 error: ', '--check')

    def test_hugepages(self):
        few = {HUGE + 'free_hugepages': '100\n'}
        self.finds(Machine(self, few, config()), 'warn', 'hugepages', '100 of 2 MiB are free',
                   'echo 668 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages')
        self.finds(Machine(self, few, config(memory={'hugepages': 'must'})), 'FAIL', 'hugepages',
                   '256 are needed')
        self.finds(Machine(self, few, config(memory={'hugepages': 'never'})), 'ok', 'hugepages',
                   'not used')
        self.finds(Machine(self, few, config(memory={'size_mb': '128'})), 'ok', 'hugepages',
                   '64 are needed')
        self.finds(Machine(self, None, config(), [HUGE + 'nr_hugepages']), 'warn', 'hugepages',
                   'this kernel has no hugepages')

    def test_slow_memory(self):
        self.finds(Machine(self, None, config()), 'ok', 'slow memory', 'refused')
        self.finds(Machine(self, None, config(memory={'slow_memory': 'yes'})), 'warn',
                   'slow memory', 'a tenth', 'slow_memory = no')

    def test_cpu(self):
        self.finds(Machine(self, {'proc/cpuinfo': 'flags : fpu sse4_1 avx2\n'}, config()), 'FAIL',
                   'cpu', 'SSE4.2', '-cpu host')
        self.finds(Machine(self, {'proc/cpuinfo': 'flags : sse4_2 pclmulqdq avx\n'}, config()),
                   'warn', 'cpu', 'no AVX2')

    def test_cores(self):
        self.finds(Machine(self, None, config(hca={'layout': 'full'})), 'warn', 'cores',
                   '9 workers for 4 CPUs')
        self.finds(Machine(self, None, config(hca={'layout': 'full'}, ub={'enable': 'yes'})),
                   'warn', 'cores', '13 workers for 4 CPUs')
        machine = Machine(self, {'sys/devices/system/cpu/isolated': '2-3\n'},
                          config(hca={'idle': 'spin', 'layout': 'txrx'}))
        self.finds(machine, 'ok', 'isolation', '2-3')
        self.finds(Machine(self, None, config(hca={'idle': 'spin'})), 'warn', 'isolation',
                   'no CPU is isolated', 'isolcpus')
        # those that are online are not all ours
        for files, said, workers in (({'proc/self/status': 'Cpus_allowed_list:\t0,2\n'}, 'affinity: 2 of 4', 2),
                                     ({'proc/self/cgroup': '0::/a/b\n',
                                       'proc/self/mountinfo': '1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n',
                                       'cg/a/cpu.max': '250000 100000\n', 'cg/a/b/cpu.max': 'max 100000\n'},
                                      'quota of the control group is 2.50 CPUs', 2)):
            machine = Machine(self, files, config(hca={'layout': 'full'}))
            self.finds(machine, 'warn', 'cores', '9 workers for %d CPUs' % workers)
            self.assertIn(said, machine.doctor().stdout)
        # a quota is the daemon's alone: programs have the other CPUs
        machine = Machine(self, {'proc/self/cgroup': '0::/a\n', 'sys/devices/system/cpu/isolated': '2-3\n',
                                 'proc/self/mountinfo': '1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n',
                                 'cg/a/cpu.max': '150000 100000\n'}, config(hca={'idle': 'spin', 'layout': 'txrx'}))
        self.finds(machine, 'warn', 'cores', '2 workers for 1 CPUs: the quota throttles them')
        self.finds(Machine(self, {'sys/devices/system/cpu/online': '0-1\n',
                                  'sys/devices/system/cpu/isolated': '1\n'},
                           config(hca={'idle': 'spin', 'layout': 'txrx'})),
                   'FAIL', 'cores', 'nothing is left')
        self.finds(Machine(self, {
            'sys/devices/system/cpu/cpu0/cpufreq/scaling_governor': 'powersave\n'}, config()),
                   'warn', 'frequency', 'powersave', 'cpupower')

    def test_limits(self):
        low = {'proc/self/limits': LIMITS % ('256', '65536')}
        self.finds(Machine(self, low, config()), 'warn', 'open files', '256')
        pci = config(port={'device': '0000:3b:00.0'})
        machine = Machine(self, {'proc/self/limits': LIMITS % ('4096', '65536'),
                                 'dev/vfio/vfio': ''}, pci)
        self.bind(machine, 'vfio-pci')
        self.finds(machine, 'FAIL', 'memlock', '64 KiB may be locked', 'LimitMEMLOCK')

    def bind(self, machine, driver):
        device = os.path.join(machine.root, 'sys/bus/pci/devices/0000:3b:00.0')
        os.makedirs(device)
        os.symlink('../../../../bus/pci/drivers/' + driver, os.path.join(device, 'driver'))

    def test_pci(self):
        pci = config(port={'device': '3b:00.0,a=1'})
        self.finds(Machine(self, None, pci), 'FAIL', 'port', 'no PCI device 0000:3b:00.0')
        machine = Machine(self, None, pci)
        self.bind(machine, 'ixgbe')
        self.finds(machine, 'FAIL', 'port', 'belongs to ixgbe',
                   'dpdk-devbind.py -b vfio-pci 0000:3b:00.0')
        machine = Machine(self, None, pci)
        self.bind(machine, 'vfio-pci')
        self.finds(machine, 'FAIL', 'vfio', '/dev/vfio/vfio', 'modprobe')
        machine = Machine(self, {'dev/vfio/vfio': ''}, pci)
        self.bind(machine, 'vfio-pci')
        self.finds(machine, 'ok', 'port', 'bound to vfio-pci')
        machine = Machine(self, None, pci)
        self.bind(machine, 'mlx5_core')
        self.finds(machine, 'ok', 'port', 'mlx5_core')

    # ---- --device: a NIC before the start ----

    def nic(self, driver, files=None, without=(), config_parts=None):
        """A machine with two nodes and a NIC on the second; driver: "" for none."""
        device = 'sys/bus/pci/devices/0000:3b:00.0/'
        node = 'sys/devices/system/node/node1/hugepages/hugepages-2048kB/'
        nic = {device + 'vendor': '0x8086\n', device + 'device': '0x1592\n', device + 'class': '0x020000\n',
               device + 'numa_node': '1\n', device + 'local_cpulist': '8-15\n',
               device + 'current_link_speed': '16.0 GT/s PCIe\n', device + 'max_link_speed': '16.0 GT/s PCIe\n',
               device + 'current_link_width': '16\n', device + 'max_link_width': '16\n',
               node + 'nr_hugepages': '512\n', node + 'free_hugepages': '512\n',
               'sys/kernel/iommu_groups/17/devices/0000:3b:00.0/x': '',
               'dev/vfio/17': '', 'proc/net/route': 'Iface\tDestination\neth0\t00000000\n'}
        machine = Machine(self, dict(nic, **(files or {})), config(**(config_parts or {})), without)
        at = os.path.join(machine.root, device)
        if driver:
            os.symlink('../../../../bus/pci/drivers/' + driver, at + 'driver')
        if 'iommu' not in without:
            os.symlink('../../../kernel/iommu_groups/17', at + 'iommu_group')
        return machine

    def nic_finds(self, machine, level, name, text, fix='', others=()):
        run = machine.doctor('--device', '3b:00.0', '--json')
        self.assertEqual((run.returncode, run.stderr), (1 if level == 'FAIL' else 0, ''), run.stdout)
        checks = json.loads(run.stdout)['checks']
        found = [c for c in checks if c['check'] == name and text in c['text']]
        self.assertEqual([c['level'] for c in found], [level], checks)
        self.assertIn(fix, found[0].get('fix', ''))
        bad = [c for c in checks if c['level'] != 'ok' and c not in found and c['check'] not in others]
        self.assertEqual(bad, [])
        return {c['check']: c['text'] for c in checks}

    def test_nic(self):
        """The device's files in /sys, with one fault after the other."""
        device, pci = 'sys/bus/pci/devices/0000:3b:00.0/', 'dpdk-devbind.py -b vfio-pci 0000:3b:00.0'
        said = self.nic_finds(self.nic('vfio-pci'), 'ok', 'device', '0000:3b:00.0 is there: 8086:1592')
        self.assertEqual(said['driver'], 'bound to vfio-pci')
        self.assertIn('group 17', said['iommu'])
        self.assertIn('node 1, with 512 free', said['numa'])
        self.assertIn('CPUs of its node: 8-15', said['lcores'])
        self.assertIn('16.0 GT/s PCIe x16', said['pcie'])
        self.nic_finds(Machine(self, None, config()), 'FAIL', 'device', 'no PCI device 0000:3b:00.0', 'dpdk-devbind')
        self.nic_finds(self.nic('nvme', {device + 'class': '0x010802\n'}), 'FAIL', 'device', 'no network device')
        self.nic_finds(self.nic('ice'), 'FAIL', 'driver', 'belongs to ice, not to vfio-pci', pci)
        self.nic_finds(self.nic(''), 'FAIL', 'driver', 'belongs to no driver', pci)
        self.nic_finds(self.nic('uio_pci_generic'), 'warn', 'driver', 'no IOMMU protects', pci)
        self.nic_finds(self.nic('vfio-pci', without=('iommu',)), 'FAIL', 'iommu', 'no IOMMU group', 'intel_iommu=on')
        self.nic_finds(self.nic('vfio-pci', {'sys/module/vfio/parameters/enable_unsafe_noiommu_mode': 'Y\n'},
                                ('iommu',)), 'warn', 'iommu', 'unsafe mode')
        self.nic_finds(self.nic('vfio-pci', without=('dev/vfio/17',)), 'FAIL', 'vfio', '/dev/vfio/17 is missing')
        node = 'sys/devices/system/node/node1/hugepages/hugepages-2048kB/'
        self.nic_finds(self.nic('vfio-pci', {node + 'free_hugepages': '100\n'}), 'warn', 'numa',
                       'node 1 has 100 free hugepages of 2 MiB, the daemon needs 256',
                       'echo 668 > /sys/devices/system/node/node1/')
        self.nic_finds(self.nic('vfio-pci', config_parts={'hca': {'lcores': '2'}}), 'warn', 'lcores',
                       'CPU 2 is not on node 1', '8-15')
        self.nic_finds(self.nic('vfio-pci', config_parts={'memory': {'numa_node': '0'}}), 'warn', 'numa',
                       'numa_node = 0, and the device is on node 1')
        self.nic_finds(self.nic('vfio-pci', {device + 'current_link_width': '8\n'}), 'warn', 'pcie',
                       'x8; the device can 16.0 GT/s PCIe x16')
        self.nic_finds(self.nic('vfio-pci', {'proc/self/limits': LIMITS % ('4096', '65536')}), 'FAIL', 'memlock',
                       '64 KiB may be locked')
        run = self.nic('vfio-pci').doctor('--device', 'eth0')
        self.assertEqual(run.returncode, 2)
        self.assertIn('--device: expected a PCI address like 0000:3b:00.0, found "eth0"', run.stderr)

    def test_nic_group(self):
        """A group is opened as a whole: another driver in it is in the way, a bridge is not."""
        other = 'sys/bus/pci/devices/0000:3b:00.1/'
        files = {'sys/kernel/iommu_groups/17/devices/0000:3b:00.1/x': '', other + 'class': '0x020000\n'}
        machine = self.nic('vfio-pci', files)
        os.symlink('../../../../bus/pci/drivers/ice', os.path.join(machine.root, other, 'driver'))
        self.nic_finds(machine, 'FAIL', 'iommu', 'group 17 has 0000:3b:00.1 too, which belongs to ice',
                       '-b vfio-pci 0000:3b:00.1')
        for more, fix in (({other + 'net/eth0/x': ''}, 'another slot: eth0 is in use'),
                          ({other + 'class': '0x010802\n'}, 'another slot: 0000:3b:00.1 is no network device')):
            machine = self.nic('vfio-pci', dict(files, **more))
            os.symlink('../../../../bus/pci/drivers/ice', os.path.join(machine.root, other, 'driver'))
            self.nic_finds(machine, 'FAIL', 'iommu', 'group 17 has 0000:3b:00.1 too', fix)
        machine = self.nic('vfio-pci', dict(files, **{other + 'class': '0x060400\n'}))
        os.symlink('../../../../bus/pci/drivers/pcieport', os.path.join(machine.root, other, 'driver'))
        self.nic_finds(machine, 'ok', 'iommu', 'group 17')

    def test_nic_interface(self):
        """An interface that vfio-pci takes away must not be in use."""
        net = {'sys/bus/pci/devices/0000:3b:00.0/net/eth7/x': '', 'sys/class/net/eth7/operstate': 'up\n',
               'sys/class/net/eth7/speed': '25000\n'}
        said = self.nic_finds(self.nic('ixgbe', net), 'FAIL', 'driver', 'belongs to ixgbe', others=('interface',))
        self.assertIn('eth7 is up; no route and no other interface needs it', said['interface'])
        self.assertEqual(said['link'], '25000 Mb/s')
        used = dict(net, **{'proc/net/route': 'Iface\tDestination\neth70\t0\neth7\t00000000\n'})
        self.nic_finds(self.nic('ixgbe', used), 'FAIL', 'interface', 'eth7 is in use: routes', others=('driver',))

    IPV6 = '%s %s ' + '0' * 32 + ' 00 ' + '0' * 32 + ' 00000100 00000001 00000000 00000001 %8s\n'

    def test_nic_uplink(self):
        """The only way to this machine is not given away: a bond, a VLAN, IPv6, virtio."""
        pci = 'sys/bus/pci/devices/0000:3b:00.0/'
        net = {pci + 'net/eth7/x': '', 'sys/class/net/eth7/operstate': 'up\n'}
        own = self.IPV6 % ('fe80' + '0' * 28, '40', 'eth7') + self.IPV6 % ('ff00' + '0' * 28, '08', 'eth7')
        other = self.IPV6 % ('0' * 32, '00', 'eth77') + self.IPV6 % ('0' * 32, '00', 'veth7')
        virtio = {pci + 'virtio3/net/eth7/x': '', 'sys/class/net/eth7/operstate': 'up\n'}

        def bind(files, master=None):
            machine = self.nic('virtio-pci', files)
            if master:
                os.symlink('../' + master, os.path.join(machine.root, 'sys/class/net/eth7/master'))
            checks = json.loads(machine.doctor('--device', '3b:00.0', '--json').stdout)['checks']
            found = {c['check']: c for c in checks}
            self.assertEqual(found['interface']['level'] == 'FAIL', 'devbind' not in found['driver']['fix'], checks)
            return found['interface']['text']
        unused = 'eth7 is up; no route'
        self.assertIn(unused, bind(net))
        self.assertIn(unused, bind(dict(net, **{'proc/net/ipv6_route': own + other})))
        self.assertIn(unused, bind(virtio))
        routes = 'eth7 is in use: routes of this machine go through it'
        default = self.IPV6 % ('0' * 32, '00', 'eth7')
        self.assertIn(routes, bind(dict(net, **{'proc/net/ipv6_route': own + default})))
        self.assertIn(routes, bind(dict(virtio, **{'proc/net/route': 'Iface\n' + 'eth0\t0\n' * 2000 + 'eth7\t0\n'})))
        self.assertIn('eth7 is in use: interface bond0 goes through it', bind(net, 'bond0'))
        self.assertIn('eth7 is in use: interface eth7.5 goes', bind(dict(net, **{'sys/class/net/eth7/upper_eth7.5/x': ''})))

    def test_nic_mlx5(self):
        """It stays with the kernel, with verbs, and without RoCE of its own."""
        device = 'sys/bus/pci/devices/0000:3b:00.0/'
        gid = device + 'infiniband/mlx5_0/ports/1/gids/0'
        good = {device + 'vendor': '0x15b3\n', device + 'net/eth7/x': '', 'sys/class/net/eth7/operstate': 'up\n',
                'sys/class/net/eth7/mtu': '9000\n', 'sys/class/net/eth7/speed': '100000\n',
                'dev/infiniband/uverbs0': '', gid: '0000:0000:0000:0000:0000:0000:0000:0000\n'}
        said = self.nic_finds(self.nic('mlx5_core', good), 'ok', 'driver', 'mlx5_core has it, as DPDK needs it')
        self.assertIn('stays with the kernel', said['interface'])
        self.assertIn('leaves frames of UDP port 4791 to DPDK', said['roce'])
        self.assertNotIn('iommu', said)
        self.assertNotIn('memlock', said)
        self.nic_finds(self.nic('vfio-pci', good), 'FAIL', 'driver', 'belongs to vfio-pci',
                       'dpdk-devbind.py -b mlx5_core 0000:3b:00.0')
        self.nic_finds(self.nic('', good), 'FAIL', 'driver', 'belongs to no driver', '-b mlx5_core')
        self.nic_finds(self.nic('mlx5_core', good, ('dev/infiniband/uverbs0',)), 'FAIL', 'uverbs', 'is missing',
                       'modprobe ib_uverbs; modprobe mlx5_ib')
        self.nic_finds(self.nic('mlx5_core', dict(good, **{gid: 'fe80:0000:0000:0000:ba3f:d2ff:fe00:0001\n'})), 'warn',
                       'roce', 'mlx5_0 has RoCE of its own', 'enable_roce value false')
        self.nic_finds(self.nic('mlx5_core', dict(good, **{'sys/class/net/eth7/operstate': 'down\n'})), 'FAIL',
                       'interface', 'eth7 is down', 'ip link set eth7 up')
        self.nic_finds(self.nic('mlx5_core', dict(good, **{'sys/class/net/eth7/mtu': '1500\n'})), 'warn', 'mtu',
                       'RoCE packets of 1024 bytes', 'mtu 4200')

    def test_interface(self):
        self.finds(Machine(self, None, config(port={'device': 'net_af_packet0,iface=nosuch'})),
                   'FAIL', 'port', 'no interface nosuch')
        self.finds(Machine(self, {'sys/class/net/eth9/operstate': 'down\n'}, config()), 'FAIL',
                   'port', 'is down', 'ip link set eth9 up')

    def test_memif(self):
        wire = 'net_memif0,role=server,socket=/run/softhca/wire'
        self.finds(Machine(self, {'run/softhca/x': ''}, config(port={'device': wire})), 'ok',
                   'memif', 'user or group only')
        self.finds(Machine(self, None, config(port={'device': wire, 'socket_mode': '0666'})),
                   'warn', 'memif', 'every user of this machine may connect')
        abstract = 'net_memif0,role=server,socket=wire'
        self.finds(Machine(self, None, config(port={'device': abstract})), 'warn', 'memif',
                   'choose a path')
        machine = Machine(self, {'run/softhca/x': ''}, config(port={'device': wire}))
        os.chmod(os.path.join(machine.root, 'run/softhca'), 0o777)
        self.finds(machine, 'warn', 'memif', 'may replace sockets', 'chmod o-w /run/softhca')

    def test_mtu(self):
        low = {'sys/class/net/eth9/mtu': '1500\n'}
        self.finds(Machine(self, low, config()), 'warn', 'mtu', 'RoCE packets of 1024 bytes',
                   'ip link set eth9 mtu 4200')
        self.finds(Machine(self, low, config(port={'roce_mtu': '2048'})), 'FAIL', 'mtu',
                   '2048 are configured')
        self.finds(Machine(self, low, config(port={'roce_mtu': '1024'})), 'ok', 'mtu', '1024')

    def test_kernel(self):
        for kind in ('tap', 'auto'):
            wanted = config(kernel={'interface': kind})
            self.finds(Machine(self, None, wanted, ['dev/net/tun']), 'FAIL', 'kernel',
                       '/dev/net/tun is missing', 'modprobe')
            self.judged(Machine(self, None, wanted), 0)
        self.finds(Machine(self, {'proc/sys/net/bridge/bridge-nf-call-iptables': '1\n'}, config()),
                   'warn', 'bridge', 'iptables', 'sysctl')

    def test_rxe(self):
        mine = {'sys/class/infiniband/rxe7/parent': 'eth9\n'}
        self.finds(Machine(self, mine, config()), 'FAIL', 'rxe', 'rxe7 is on interface eth9 too',
                   'rdma link delete rxe7')
        other = {'sys/class/infiniband/rxe7/parent': 'eth1\n'}
        self.finds(Machine(self, other, config()), 'ok', 'rxe', 'eth1')
        for file in ('proc/net/udp', 'proc/net/udp6'):
            used = {file: '  sl\n  12: 0000000000000000:12B7 00:0000 07\n'}
            self.finds(Machine(self, used, config()), 'warn', 'rxe', '4791')

    def test_sockets(self):
        machine = Machine(self, None, config())
        os.makedirs(os.path.join(machine.root, 'run/softhca'))
        path = os.path.join(machine.root, 'run/softhca/a.sock')
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(path)
            s.listen()
            self.finds(machine, 'ok', 'socket', 'can be used')
        self.finds(machine, 'warn', 'socket', 'no process listens', 'rm ' + path)

    def test_socket_elsewhere(self):
        machine = Machine(self, None, config(control={'socket': '/opt/my.sock'}))
        os.makedirs(os.path.join(machine.root, 'opt'))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(os.path.join(machine.root, 'opt/my.sock'))
        self.finds(machine, 'warn', 'socket', 'no process listens')

    def test_addresses(self):
        none = {'hca': {}, 'port': CONFIG['port']}
        self.finds(Machine(self, None, none), 'FAIL', 'gids', 'no address', 'address =')
        self.finds(Machine(self, None, dict(none, kernel={'interface': 'tap', 'adopt': 'yes'})), 'ok', 'gids',
                   'kernel interface')

    def test_this_machine(self):
        """It may be well or not, but it is judged."""
        run = subprocess.run([CTL, 'doctor', '--json', '--config', '/dev/null'], stdout=subprocess.PIPE, encoding='utf-8',
                             timeout=240, check=False)
        self.assertIn(run.returncode, (0, 1))
        self.assertGreater(len(json.loads(run.stdout)['checks']), 5)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
