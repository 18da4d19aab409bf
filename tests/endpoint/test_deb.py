#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages are built, hold what they should, and what they hold runs.

test_deb.py ROOT [BUILD]

They are made of BUILD where it is a release build for /usr, as that of tests/run; otherwise everything
is compiled.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from daemon import Daemon
import hardened

ROOT = os.path.abspath(sys.argv[1])
BUILD = sys.argv[2] if len(sys.argv) > 2 else None
SKIPPED = 77
EXPECTED = ('./usr/sbin/softhcad', './usr/bin/softhca-perf', './etc/softhca/softhcad.conf',
            './lib/systemd/system/softhcad.service', './usr/share/man/man8/softhcad.8.gz',
            './usr/share/man/man5/softhcad.conf.5.gz', './usr/share/man/man1/softhca-perf.1.gz',
            './usr/share/doc/softhca/copyright', './usr/share/doc/softhca/examples/memif-a.conf',
            './usr/share/doc/softhca/README.md', './usr/share/doc/softhca/docs/pipeline.svg',
            './usr/share/doc/softhca/changelog.Debian.gz',
            './usr/share/bash-completion/completions/softhca-perf',
            './usr/share/bash-completion/completions/softhca-ctl',
            './usr/share/zsh/vendor-completions/_softhca',
            './usr/share/fish/vendor_completions.d/softhca-perf.fish',
            './usr/share/man/man1/softhca-ctl.1.gz', './usr/share/doc/softhca/docs/ub.md',
            './usr/share/softhca/uboe.lua', './usr/share/softhca/valgrind.supp')
EXPECTED_DEV = ('./usr/include/softhca/softhca.h', './usr/include/softhca/embed.h',
                './usr/include/softhca/urma.h')
EXAMPLES = 'usr/share/doc/softhca-dev/examples'


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', check=True, timeout=3600, **options).stdout


def check_dev(tree, package, env):
    """A program is built with what pkg-config says, and with nothing of DPDK in it."""
    output('dpkg-deb', '-x', package, tree)
    folder = os.path.join(env['LD_LIBRARY_PATH'], 'pkgconfig')
    env = dict(env, PKG_CONFIG_PATH=folder, PKG_CONFIG_SYSROOT_DIR=tree)
    assert output(compiled(tree, 'embedded_write', 'softhca-embed', env),
                  env=env) == 'written by the other HCA\n'
    compiled(tree, 'two_processes', 'softhca', env)
    check_urma(tree, compiled(tree, 'urma_write', 'softhca-urma', env), env)


def compiled(tree, example, library, env):
    words = output('pkg-config', '--cflags', '--libs', library, env=env).split()
    for word in words:
        assert word.startswith(('-I' + tree, '-L' + tree, '-lsofthca')), (library, word)
    program = os.path.join(tree, example)
    output('cc', os.path.join(tree, EXAMPLES, example + '.c'), '-o', program, '-Wall', '-Werror',
           *words, env=env)
    return program


def check_urma(tree, program, env):
    """A program of URMA on the daemon of the package."""
    daemon = Daemon(os.path.join(tree, 'usr/sbin/softhcad'), tree, 'deb%d' % os.getpid(), 'net_ring0',
                    ['192.0.2.1/24'], {'ub': {'enable': 'yes'}})
    try:
        daemon.start(env=env)
        # a device has at most 63 bytes, and the path may be longer
        said = output(program, './' + os.path.basename(daemon.socket), env=env, cwd=tree)
        assert said == 'written over UB, 16 bytes, immediate value 42\n', said
        assert daemon.stop() == 0, daemon.text()
    finally:
        daemon.close()


def check_together(place, packages):
    """No file is in two packages; dpkg would not install them."""
    root = os.path.join(place, 'unpacked')
    os.makedirs(os.path.join(root, 'var/lib/dpkg/info'))
    os.makedirs(os.path.join(root, 'var/lib/dpkg/updates'))
    with open(os.path.join(root, 'var/lib/dpkg/status'), 'w', encoding='utf-8'):
        pass
    output('dpkg', '--root=' + root, '--force-depends', '--force-not-root', '--force-bad-path',
           '--unpack', *packages)
    said = output('dpkg', '--root=' + root, '--get-selections').split()
    assert said.count('install') == len(packages), said


def check_linked(place, package):
    """dpkg-shlibdeps finds the package of each library, and its functions."""
    folder = os.path.join(place, 'control')
    output('dpkg-deb', '-e', package, folder)
    with open(os.path.join(folder, 'symbols'), encoding='utf-8') as file:
        symbols = file.read()
    with open(os.path.join(folder, 'shlibs'), encoding='utf-8') as file:
        shlibs = [line.split()[:3] for line in file]
    for library, function in (('libsofthca', 'softhca_open'),
                              ('libsofthca-embed', 'softhca_embed_create'),
                              ('libsofthca-urma', 'urma_create_jetty')):
        part = symbols.split('%s.so.0 softhca ' % library)[1].split('\nlib')[0]
        assert re.search('^ %s@Base ' % function, part, re.M), part
        assert [library, '0', 'softhca'] in shlibs, shlibs


def contents(package):
    return [line.split()[5] for line in output('dpkg-deb', '-c', package).splitlines()]


def check_verbs(place, tree, package):
    """The dynamic loader takes the library of the package before that of the system."""
    folder = glob.glob(os.path.join(tree, 'usr/lib/*/softhca'))[0]
    assert os.listdir(folder).count('libibverbs.so.1') == 1, os.listdir(folder)
    multiarch = os.path.basename(os.path.dirname(folder))
    root = os.path.join(place, 'root')
    output('dpkg-deb', '-x', package, root)
    entry = os.path.join(root, 'etc/ld.so.conf.d/00-softhca.conf')
    with open(entry, encoding='utf-8') as file:
        assert file.read() == '/usr/lib/%s/softhca\n' % multiarch, entry
    with open(os.path.join(os.path.dirname(entry), '%s.conf' % multiarch), 'w',
              encoding='utf-8') as file:
        file.write('/usr/lib/%s\n' % multiarch)
    with open(os.path.join(root, 'etc/ld.so.conf'), 'w', encoding='utf-8') as file:
        file.write('include /etc/ld.so.conf.d/*.conf\n')
    for where in 'usr/lib/%s/softhca' % multiarch, 'usr/lib/%s' % multiarch:
        os.makedirs(os.path.join(root, where), exist_ok=True)
        shutil.copy(os.path.join(folder, 'libibverbs.so.1'), os.path.join(root, where))
    if os.geteuid() != 0:
        return
    output('ldconfig', '-r', root)
    found = re.findall(r'libibverbs\.so\.1 .*=> (\S+)', output('ldconfig', '-r', root, '-p'))
    assert found == ['/usr/lib/%s/softhca/libibverbs.so.1' % multiarch,
                     '/usr/lib/%s/libibverbs.so.1' % multiarch], found
    check_run(tree, os.path.dirname(folder))


def check_run(tree, libraries):
    """The programs of the packages find each other wherever they are."""
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, XDG_RUNTIME_DIR=os.path.dirname(tree))
    run = os.path.join(tree, 'usr/bin/softhca-run')
    said = output(run, '--own', os.path.join(tree, 'usr/bin/softhca-ctl'), 'devices', env=env)
    assert re.search(r'^own +[0-9a-f]{16}', said, re.M), said


def check_hardened(place, packages):
    """Every program and library in them, and that flags of the distribution reach the compiler."""
    for name in packages:
        tree = os.path.join(place, 'tree-' + name)
        output('dpkg-deb', '-x', os.path.join(place, name), tree)
        for path in hardened.elf_files(tree):
            said = hardened.complaints(path)
            assert not said, (path, said)
        for path in glob.glob(os.path.join(tree, 'usr/lib/*/*.a')):
            said = hardened.archive_complaints(path)
            assert not said, (path, said)


def check_flags(build):
    """What build-deb compiles with when it builds: as the release build, and as the distribution says."""
    output(os.path.join(ROOT, 'config/build-deb'), '--configure', '--build', build)
    with open(os.path.join(build, 'build', 'compile_commands.json'), encoding='utf-8') as file:
        commands = [entry['command'].split() for entry in json.load(file)
                    if '/softhcad.c' in entry['file']]
    assert len(commands) == 1, commands
    flags = output('dpkg-buildflags', '--get', 'CFLAGS').split()
    assert '-fstack-protector-strong' in flags, flags
    for flag in flags:
        if flag not in ('-O2', '-g') and not flag.startswith('-ffile-prefix-map='):
            assert flag in commands[0], (flag, commands[0])
    levels = [word for word in commands[0] if word.startswith(('-D_FORTIFY_SOURCE', '-O'))]
    assert levels in (['-O3', '-D_FORTIFY_SOURCE=2'], ['-D_FORTIFY_SOURCE=2', '-O3']), levels


def fits(build):
    options = {option['name']: option['value'] for option in json.loads(
        output('meson', 'introspect', '--buildoptions', build))}
    return [options[name] for name in ('prefix', 'buildtype', 'b_sanitize')] == [
        '/usr', 'release', 'none']


def check(place):
    words = []
    if BUILD is not None and fits(BUILD):
        words = ['--from', BUILD]
        check_flags(os.path.join(place, 'alone'))
    output(os.path.join(ROOT, 'config/build-deb'), '--output', place, '--build',
           os.path.join(place, 'work'), *words)
    packages = sorted((name for name in os.listdir(place) if name.endswith('.deb')),
                      key=lambda name: name.split('_')[0])
    main = os.path.join(place, packages[0])
    expected = ['softhca', 'softhca-dev']
    if './usr/bin/softhca-run' in contents(main):
        expected.append('softhca-verbs')
    assert [name.split('_')[0] for name in packages] == expected, packages
    files = contents(main)
    for path in EXPECTED:
        assert path in files, '%s is not in %s' % (path, packages[0])
    files = contents(os.path.join(place, packages[1]))
    for path in EXPECTED_DEV:
        assert path in files, '%s is not in %s' % (path, packages[1])
    check_together(place, [os.path.join(place, name) for name in packages])
    check_linked(place, main)
    check_hardened(place, packages)
    for field, word in (('Depends', 'librte-net-af-packet'), ('Depends', 'libc6'),
                        ('Architecture', '')):
        assert word in output('dpkg-deb', '-f', main, field), field
    tree = os.path.join(place, 'tree')
    output('dpkg-deb', '-x', main, tree)
    libraries = [folder for folder, _, names in os.walk(tree)
                 if any(name.startswith('libsofthca.so') for name in names)]
    env = dict(os.environ, LD_LIBRARY_PATH=libraries[0])
    check_dev(tree, os.path.join(place, packages[1]), env)
    if len(packages) == 3:
        check_verbs(place, tree, os.path.join(place, packages[2]))
    daemon = os.path.join(tree, 'usr/sbin/softhcad')
    said = output(daemon, '-c', os.path.join(tree, 'usr/share/doc/softhca/examples/memif-a.conf'),
                  '--check', env=env)
    assert said.endswith('good\n'), said
    said = subprocess.run([daemon, '-c', os.path.join(tree, 'etc/softhca/softhcad.conf'),
                           '--check'], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', timeout=60, check=False)
    assert said.returncode != 0 and 'set device = ' in said.stdout, said
    print('%s: %s' % (packages, output('dpkg-deb', '-f', main, 'Depends')))


def main():
    missing = [name for name in ('dpkg-deb', 'dpkg-shlibdeps', 'meson', 'ninja', 'pkg-config')
               if shutil.which(name) is None]
    if missing:
        print('skipped: no %s here' % ', '.join(missing))
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix='softhca-deb-') as place:
        try:
            check(place)
        except subprocess.CalledProcessError as error:
            print(error.stdout)
            raise
    return 0


sys.exit(main())
