#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the packages run where only the packages and their dependencies are installed.

test_packages.py ROOT BUILD [PACKAGES-ROOT]

BUILD is a release build for /usr, as tests/run makes it; the packages are made of it. The root is
made of files of this machine: essential packages and the closure of Depends, nothing that is only
recommended, no development package. The commands of the documentation run in it, as root and as an
ordinary user without XDG_RUNTIME_DIR. With PACKAGES-ROOT (tests/bare) they run in that root, where
apt has installed the packages.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
SKIPPED = 77
LIMIT_S = 300  # of a command, on a busy machine
USER = 51234
NO_COMMANDS = 'libsofthca-dev', 'softhca-doc', 'softhca-plot'  # of those that are run here
DOC = '/usr/share/doc/softhca/'
FIELDS = '${binary:Package}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\t${db:Status-Status}\n'

# In namespaces of their own, which end with the command
ENTER = r'''
set -e
ip link set lo up
ip link add here mtu 3000 type veth peer name there
ip link set here up
ip link set there up
mount --bind "$1" "$1"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t tmpfs -o mode=755 run "$1/run"
mount -t tmpfs -o mode=1777 tmp "$1/tmp"
exec chroot "$@"
'''
STARTED = r'''
>/tmp/log
"$@" >/tmp/log 2>&1 & daemon=$!
until grep -q ready /tmp/log; do kill -0 $daemon 2>/dev/null || { cat /tmp/log; exit 1; }; sleep 0.1; done
'''
# A device that the configuration has, and the driver of DPDK behind it; None: ours
DEVICES = {'net_ring0': 'ring', 'net_null0': 'null', 'net_tap0': 'tap',
           'net_af_packet0,iface=here': 'af_packet', 'net_vhost0,iface=/tmp/vm.sock': 'vhost',
           'net_virtio_user0,path=/tmp/vm.sock,server=1': 'virtio', 'net_af_xdp0,iface=here': 'af_xdp',
           'net_memif0,role=server,socket=/tmp/wire': None}
NOT_ALONE = 'net_virtio_user', 'net_af_xdp'  # wait for a peer; not on every kernel


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
                          check=True, timeout=1200, **options).stdout


# ---- the root ----

class Installed:
    """The packages of this machine."""

    def __init__(self):
        self.depends, self.full, self.essential, self.provided = {}, {}, [], {}
        for line in output('dpkg-query', '-W', '-f', FIELDS).splitlines():
            full, name, essential, depends, provides, status = line.split('\t')
            if status != 'installed':
                continue
            self.full[name], self.depends[name] = full, depends
            if essential == 'yes':
                self.essential.append(name)
            for word in re.findall(r'[a-z0-9][a-z0-9+.-]+(?= *\(|,|$| )', provides):
                self.provided.setdefault(word, name)

    def names(self, depends):
        """One of each list of alternatives."""
        for group in depends.split(','):
            words = [re.split(r'[\s(:]', word.strip())[0] for word in group.split('|')]
            here = [self.provided.get(word, word) for word in words]
            here = [name for name in here if name in self.depends]
            if here:
                yield here[0]
            elif any(words) and 'softhca' not in ' '.join(words):
                raise AssertionError('no package here is %s' % group)

    def closure(self, depends):
        found, new = set(), set(self.essential) | set(self.names(depends))
        while new:
            name = new.pop()
            if name not in found:
                found.add(name)
                new |= set(self.names(self.depends[name]))
        return found


def copy_files(root, full_names):
    paths = {path for path in output('dpkg-query', '-L', *full_names).splitlines()
             if os.path.islink(path) or os.path.isfile(path)}
    keep = sorted(path for path in paths if not path.startswith(
        ('/usr/share/doc/', '/usr/share/man/', '/usr/share/locale/', '/usr/share/zoneinfo/')))
    pack = subprocess.Popen(['tar', '-c', '-C', '/', '--no-recursion', '-T', '-'], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)
    with subprocess.Popen(['tar', '-x', '-C', root, '--keep-directory-symlink'], stdin=pack.stdout) as unpack:
        pack.stdin.write('\n'.join(path[1:] for path in keep).encode())
        pack.stdin.close()
        assert (pack.wait(), unpack.wait()) == (0, 0)


def make_root(root, packages):
    for name in 'usr/lib', 'usr/lib64', 'usr/bin', 'usr/sbin', 'dev', 'proc', 'sys', 'run', 'tmp', 'var', 'etc':
        os.makedirs(os.path.join(root, name))
    for name in 'lib', 'lib64', 'bin', 'sbin':
        os.symlink('usr/' + name, os.path.join(root, name))
    os.symlink('/run', os.path.join(root, 'var/run'))
    here = Installed()
    depends = ', '.join(output('dpkg-deb', '-f', path, 'Depends').strip() for path in packages)
    names = here.closure(depends)
    assert not [name for name in names if name.endswith('-dev')], names
    copy_files(root, [here.full[name] for name in names])
    for path in packages:
        output('bash', '-c', 'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" '
               '--keep-directory-symlink', 'unpack', path, root)
    for name in 'passwd', 'group', 'ld.so.conf', 'nsswitch.conf', 'hosts':
        output('cp', '-L', '/etc/' + name, os.path.join(root, 'etc'))
    with open(os.path.join(root, 'etc/ld.so.conf'), 'w', encoding='ascii') as file:
        file.write('include /etc/ld.so.conf.d/*.conf\n')
    output('ldconfig', '-r', root)


# ---- the commands ----

class Commands:
    def __init__(self, root):
        self.root = root
        self.wrong = []

    def run(self, name, user, command, expected, status=0):
        become = ['setpriv', '--reuid=%d' % user, '--regid=%d' % user, '--clear-groups'] if user else []
        run = subprocess.run(
            ['setpriv', '--pdeathsig', 'KILL', 'unshare', '--mount', '--net', '--pid', '--fork', '--kill-child',
             'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/tmp', 'LANG=C.UTF-8',
             'bash', '-c', ENTER, 'enter', self.root, *become, 'bash', '-c', 'cd /tmp\n' + command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
            timeout=LIMIT_S, check=False)
        good = run.returncode == status and re.search(expected, run.stdout, re.M)
        print('%-6s %-6s %-20s exit status %d' % ('ok' if good else 'WRONG', 'user' if user else 'root', name,
                                                 run.returncode), flush=True)
        if not good:
            print(run.stdout)
            self.wrong.append(name)

    def documented(self, user):
        """Commands of both users."""
        self.run('perf', user, 'softhca-perf --op write --size 4096 --iters 2000 --verify', r'^ *4096 .* verified$')
        self.run('perf ub', user, 'softhca-perf --wire ub --op write --size 4096 --iters 1000 --verify',
                 r'^ *4096 ')
        for words, name in (('', 'own'), ('--own', 'own'), ('--embed', 'embed0'),
                            ('--impair drop=0.01,seed=7', 'own[0-9]+'),
                            ('--embed --impair drop=0.01,seed=7', 'embed0')):
            self.run('run ' + words, user, 'softhca-run %s /verbs_write' % words,
                     '^%s: written by verbs$' % name)
        self.run('run --sysfs', user, 'softhca-run --own --sysfs cat /sys/class/infiniband/own/node_type',
                 '^1: CA$')
        self.run('devices', user, 'softhca-run softhca-ctl devices', '^own +[0-9a-f]{16}')
        for words in 'softhca-run ', 'softhca-run --embed ', '':
            self.run(words + 'doctor', user, words + 'softhca-ctl doctor', '(?s)^ok +role .*^0 failures, 0 warnings$')
        self.run('verbs package', user, 'SOFTHCA_DEVICE=embed /verbs_write', '^embed0: written by verbs$')
        self.run('user.conf', user, 'set -- softhcad -c %sexamples/user.conf%s'
                 'SOFTHCA_DEVICE=/tmp/softhca-try.sock softhca-run /verbs_write; softhca-ctl status' %
                 (DOC, STARTED), '(?s)^softhca-try: written by verbs$.*^health +well')

    def five(self):
        """The commands of the README, as far as they start installed programs."""
        with open(self.root + DOC + 'README.md', encoding='utf-8') as file:
            lines = re.search(r'(?s)in five commands\n(.*?)\n## ', file.read()).group(1)
        lines = [line[4:].split(' #')[0].replace('build/release/apps/', '').replace('config/examples/', DOC + 'examples/')
                 for line in lines.split('\n') if line.startswith('    ')]
        assert len(lines) == 5, lines
        self.run('five commands', 0, '\n'.join(lines[2:]), r'^ *[0-9]+ .* verified$')

    def devices(self):
        for device in DEVICES:
            config = ('[hca]\nname = t\n[port]\ndevice = %s\n[addresses]\naddress = 192.0.2.1/24\n[memory]\n'
                      'hugepages = never\nsize_mb = 256\n[limits]\nlog_qps = 8\nlog_cqs = 8\n' % device)
            words = "printf '%s' >c; set -- softhcad -c c\n" % config.replace('\n', '\\n')
            if device.startswith(NOT_ALONE):
                self.run(device, 0, words + '"$@" --check', 'good$')
            else:
                self.run(device, 0, words + STARTED + 'cat /tmp/log', 'ready$')


def check_drivers(root):
    """The configuration accepts no device without its driver."""
    with open(os.path.join(ROOT, 'src/endpoint/endpoint_device.c'), encoding='utf-8') as file:
        known = set(re.findall(r'^\t\{"net_(\w+)"', file.read(), re.M))
    assert known == {re.match('net_([a-z_]+)[0-9]', device).group(1) for device in DEVICES}, known
    for driver in ['net_' + name for name in DEVICES.values() if name] + ['mempool_ring', 'bus_pci', 'bus_vdev']:
        found = glob.glob(os.path.join(root, 'usr/lib/*/dpdk/pmds-*/librte_%s.so.*' % driver))
        assert found, 'no package holds DPDK\'s driver ' + driver


def check(root):
    program = os.path.join(root, 'verbs_write')
    if not os.path.exists(program):
        output('cc', os.path.join(ROOT, 'examples/verbs_write.c'), '-o', program, '-libverbs')
    commands = Commands(root)
    for user in 0, USER:
        commands.documented(user)
    commands.five()
    commands.devices()
    check_drivers(root)
    assert not commands.wrong, commands.wrong


def fits(build):
    options = {option['name']: option['value'] for option in json.loads(
        output('meson', 'introspect', '--buildoptions', build))}
    return [options[name] for name in ('prefix', 'buildtype', 'b_sanitize')] == ['/usr', 'release', 'none']


def main():
    if os.geteuid() != 0:
        print('skipped: needs root, for a root of its own')
        return SKIPPED
    if len(sys.argv) > 3:
        check(os.path.abspath(sys.argv[3]))
        return 0
    if not fits(BUILD):
        print('skipped: %s is no release build for /usr' % BUILD)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix='softhca-packages-') as place:
        output(os.path.join(ROOT, 'config/build-deb'), '--output', place, '--from', BUILD)
        packages = [path for path in glob.glob(os.path.join(place, '*.deb'))
                    if not os.path.basename(path).startswith(NO_COMMANDS)]
        root = os.path.join(place, 'root')
        make_root(root, packages)
        os.chmod(place, 0o755)
        check(root)
    return 0


sys.exit(main())
