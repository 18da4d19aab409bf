#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages are built and complete, and their programs run.

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
DOC = './usr/share/doc/'
PAGES = './usr/share/man/'
# Each package, and some of its files; LIB is the folder of libraries, UNIT that of systemd's units,
# which Debian 12 has in /lib
PACKAGES = {
    'softhca': ('./usr/sbin/softhcad', './usr/bin/softhca-perf', './usr/bin/softhca-ctl',
                './etc/softhca/softhcad.conf', PAGES + 'man8/softhcad.8.gz',
                PAGES + 'man5/softhcad.conf.5.gz', PAGES + 'man1/softhca-perf.1.gz',
                PAGES + 'man1/softhca-ctl.1.gz', DOC + 'softhca/examples/memif-a.conf',
                DOC + 'softhca/README.md', DOC + 'softhca/changelog.Debian.gz',
                DOC + 'softhca/changelog.gz', './usr/share/bash-completion/completions/softhca-perf',
                './usr/share/bash-completion/completions/softhca-ctl',
                './usr/share/zsh/vendor-completions/_softhca',
                './usr/share/fish/vendor_completions.d/softhca-perf.fish', './usr/share/softhca/uboe.lua',
                'UNIT/softhcad.service', 'UNIT/softhca-metrics.service', './usr/share/softhca/grafana/softhca.json'),
    'softhca-plot': ('./usr/bin/softhca-plot', PAGES + 'man1/softhca-plot.1.gz'),
    'libsofthca0': ('LIB/libsofthca.so.0',),
    'libsofthca-embed0': ('LIB/libsofthca-embed.so.0',),
    'libsofthca-urma0': ('LIB/libsofthca-urma.so.0',),
    'libsofthca-dev': ('./usr/include/softhca/softhca.h', './usr/include/softhca/embed.h',
                       './usr/include/softhca/urma.h', './usr/include/softhca/cm.h',
                       'LIB/libsofthca.a', 'LIB/libsofthca.so'),
    'softhca-run': ('./usr/bin/softhca-run', PAGES + 'man1/softhca-run.1.gz',
                    './usr/share/softhca/valgrind.supp', 'LIB/softhca/libibverbs.so.1',
                    'LIB/softhca/libsofthca-verbs.so', 'LIB/softhca/libsofthca-sysfs.so'),
    'softhca-verbs': ('./etc/ld.so.conf.d/00-softhca.conf', 'LIB/softhca-verbs/libibverbs.so.1'),
    'softhca-doc': (DOC + 'softhca/docs/pipeline.svg', DOC + 'softhca/docs/guide/ub.md', DOC + 'softhca/SECURITY.md'),
}
LIBRARIES = (('libsofthca', 'softhca_open'), ('libsofthca-embed', 'softhca_embed_create'),
             ('libsofthca-urma', 'urma_create_jetty'))
FOLDERS = {'LIB/': r'\./usr/lib/[^/]+/', 'UNIT/': r'\./(usr/)?lib/systemd/system/'}
EXAMPLES = 'usr/share/doc/libsofthca-dev/examples'


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', check=True, timeout=3600, **options).stdout


def check_dev(tree, env):
    """A program is built with the flags of pkg-config, which have no part of DPDK."""
    folder = os.path.join(env['LD_LIBRARY_PATH'], 'pkgconfig')
    env = dict(env, PKG_CONFIG_PATH=folder, PKG_CONFIG_SYSROOT_DIR=tree)
    assert output(compiled(tree, 'embedded_write', 'softhca-embed', env),
                  env=env) == 'written by the other HCA\n'
    assert output(compiled(tree, 'hello_write', 'softhca', env), env=env) == 'written over RoCE\n'
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
           '--force-script-chrootless', '--unpack', *packages)
    said = output('dpkg', '--root=' + root, '--get-selections').split()
    assert said.count('install') == len(packages), said


def control(place, package):
    """The files of control of a package, by name"""
    folder = os.path.join(place, 'control-' + os.path.basename(package))
    output('dpkg-deb', '-e', package, folder)
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            found[name] = file.read()
    return found


def check_linked(place, packages):
    """dpkg-shlibdeps finds the package of each library, and its functions: from a release, not from
    a revision of the package."""
    for library, function in LIBRARIES:
        said = control(place, packages[library + '0'])
        assert re.match(r'%s\.so\.0 %s0 #MINVER#$' % (library, library), said['symbols'], re.M)
        found = re.search('^ %s@SOFTHCA\\S* (\\S+)$' % function, said['symbols'], re.M)
        assert found, said['symbols']
        assert '-' not in found.group(1), found.group()
        assert '@Base' not in said['symbols'], said['symbols']
        assert [library, '0', library + '0'] == said['shlibs'].split()[:3], said['shlibs']
        assert 'ldconfig' in said['triggers'], said


def check_scripts(place, packages):
    """Changes on a machine are commands of debhelper, which test whether they apply."""
    for package in packages.values():
        said = control(place, package)
        for name in 'preinst', 'postinst', 'prerm', 'postrm':
            for word in 'ldconfig', 'systemctl ':
                assert word not in said.get(name, '').replace('systemctl --system daemon-reload', ''), \
                    (package, name, said[name])
    main = control(place, packages['softhca'])
    assert main['conffiles'].split() == ['/etc/softhca/softhcad.conf'], main['conffiles']
    assert 'deb-systemd-invoke start' not in main['postinst'], main['postinst']
    assert 'daemon-reload' in main['postinst'], main['postinst']
    stopped = re.search('deb-systemd-invoke stop (.*) >', main['prerm']).group(1).split()
    assert stopped == ['softhcad.service', 'softhca-metrics.service'], main['prerm']
    verbs = control(place, packages['softhca-verbs'])
    assert verbs['conffiles'].split() == ['/etc/ld.so.conf.d/00-softhca.conf'], verbs
    assert 'ldconfig' in verbs['triggers'], verbs


def check_alone(packages):
    """Libraries of programs need no DPDK; the daemon has the drivers of all its devices."""
    for name in 'libsofthca0', 'libsofthca-urma0':
        assert 'librte' not in output('dpkg-deb', '-f', packages[name], 'Depends'), name
    for name, words in (('softhca', ('librte-net-af-packet', 'libc6')),
                        ('libsofthca-embed0', ('librte-mempool-ring', 'librte-net-ring'))):
        depends = output('dpkg-deb', '-f', packages[name], 'Depends')
        assert not [word for word in words if word not in depends], (name, depends)


def check_build_depends():
    """config/setup installs the build dependencies of the packages."""
    with open(os.path.join(ROOT, 'config/debian/control'), encoding='utf-8') as file:
        depends = re.search(r'^Build-Depends: (.*?)^\S', file.read(), re.M | re.S).group(1)
    with open(os.path.join(ROOT, 'config/setup'), encoding='utf-8') as file:
        known = re.split(r'[\s"|]+', file.read())
    for word in re.split(r'[\s,]+', re.sub(r'\(.*?\)', '', depends)):
        assert word.replace('-compat', '') in known + [''], word


def check_lintian(packages):
    """No error; where lintian is."""
    if shutil.which('lintian') is None:
        print('not judged by lintian, which is not here')
        return
    run = subprocess.run(['lintian', '--allow-root', '--fail-on', 'none', *packages.values()],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', timeout=600,
                         check=False)
    print(run.stdout)
    assert not re.findall('^E:.*', run.stdout, re.M), run.stdout


def check_upgrade(place, package):
    """The line of 0.1.0, which was no conffile, gives way without a question; one of the administrator's
    stays."""
    if os.geteuid() != 0:
        return
    multiarch = output('dpkg-architecture', '-qDEB_HOST_MULTIARCH').strip()
    old = '/usr/lib/%s/softhca\n' % multiarch
    for name, line, kept in (('old', old, False), ('own', '/opt/verbs\n', True)):
        root = os.path.join(place, 'upgrade-' + name)
        entry = 'etc/ld.so.conf.d/00-softhca.conf'
        text = {'pack/DEBIAN/control': 'Package: softhca-verbs\nVersion: 0.1.0-1\nArchitecture: all\n'
                                       'Maintainer: x <x@localhost>\nDescription: as it was\n',
                'pack/' + entry: old, 'var/lib/dpkg/status': ''}
        for folder in 'var/lib/dpkg/info', 'var/lib/dpkg/updates':
            os.makedirs(os.path.join(root, folder))
        for path, words in text.items():
            write(os.path.join(root, path), words)
        output('dpkg-deb', '-b', os.path.join(root, 'pack'), root + '.deb')
        dpkg = ('dpkg', '--root=' + root, '--force-depends', '--force-script-chrootless', '-i')
        output(*dpkg, root + '.deb')
        entry = os.path.join(root, entry)
        assert text_of(entry) == old
        write(entry, line)
        run = subprocess.run([*dpkg, package], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, encoding='utf-8', timeout=60, check=False)
        assert (run.returncode != 0, text_of(entry) == line) == (kept, kept), run.stdout
        if not kept:
            assert text_of(entry) == '/usr/lib/%s/softhca-verbs\n' % multiarch, run.stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def text_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


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
        assert file.read() == '/usr/lib/%s/softhca-verbs\n' % multiarch, entry
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
    assert loaded(root) == ['/usr/lib/%s/softhca-verbs/libibverbs.so.1' % multiarch,
                            '/usr/lib/%s/libibverbs.so.1' % multiarch]
    # removed, not purged: the line is a conffile and stays
    shutil.rmtree(os.path.join(root, 'usr/lib', multiarch, 'softhca-verbs'))
    assert loaded(root) == ['/usr/lib/%s/libibverbs.so.1' % multiarch]
    check_run(tree, os.path.dirname(folder))


def loaded(root):
    output('ldconfig', '-r', root)
    return re.findall(r'libibverbs\.so\.1 .*=> (\S+)', output('ldconfig', '-r', root, '-p'))


def check_run(tree, libraries):
    """The programs of the packages find each other wherever they are."""
    env = dict(os.environ, LD_LIBRARY_PATH=libraries, XDG_RUNTIME_DIR=os.path.dirname(tree))
    run = os.path.join(tree, 'usr/bin/softhca-run')
    said = output(run, '--own', os.path.join(tree, 'usr/bin/softhca-ctl'), 'devices', env=env)
    assert re.search(r'^own +[0-9a-f]{16}', said, re.M), said


def check_hardened(tree):
    """Every program and library of them."""
    for path in hardened.elf_files(tree):
        said = hardened.complaints(path)
        assert not said, (path, said)
    for path in glob.glob(os.path.join(tree, 'usr/lib/*/*.a')):
        said = hardened.archive_complaints(path)
        assert not said, (path, said)


def check_flags(build):
    """Options of build-deb's build: as the release build, and as the distribution says."""
    output(os.path.join(ROOT, 'config/build-deb'), '--configure', '--build', build)
    path = os.path.join(build, 'softhca-deb', 'softhca', 'build', 'compile_commands.json')
    with open(path, encoding='utf-8') as file:
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


def refused(script, *words):
    run = subprocess.run([script, '--configure', *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         encoding='utf-8', timeout=60, check=False)
    assert run.returncode == 1, run.stdout
    return run.stdout


def check_folder(place):
    """build-deb removes nothing that it has not made: not the tree, and not a file with its folder's name."""
    script = os.path.join(ROOT, 'config/build-deb')
    other = os.path.join(place, 'other')
    os.makedirs(os.path.join(other, 'softhca-deb/mine'))
    said = refused(script, '--output', place, '--build', other)
    assert '%s/softhca-deb is there and not made by build-deb' % os.path.realpath(other) in said, said
    assert os.path.isdir(os.path.join(other, 'softhca-deb/mine'))
    for name in 'softhca-deb', 'softhca-deb/softhca':
        folder = os.path.join(place, 'tree-of-' + os.path.basename(name))
        copy = os.path.join(folder, name, 'config/build-deb')
        write(os.path.join(folder, 'softhca-deb/.build-deb'), '')
        os.makedirs(os.path.dirname(copy))
        for file in 'meson.build', 'meson_options.txt', 'config/lib.sh', 'config/build-deb':
            shutil.copy(os.path.join(ROOT, file), os.path.join(folder, name, file))
        said = refused(copy, '--output', place, '--build', folder)
        assert 'has the tree itself' in said, said
        assert os.path.exists(copy)


def fits(build):
    options = {option['name']: option['value'] for option in json.loads(
        output('meson', 'introspect', '--buildoptions', build))}
    return [options[name] for name in ('prefix', 'buildtype', 'b_sanitize')] == [
        '/usr', 'release', 'none']


def check(place):
    check_build_depends()
    check_folder(place)
    words = []
    work = os.path.join(place, 'work')
    beside = os.path.join(work, 'softhca/.git/config')  # a checkout, and a package of others
    foreign = os.path.join(work, 'foreign.deb')
    write(beside, '')
    write(foreign, '')
    if BUILD is not None and fits(BUILD):
        words = ['--from', BUILD]
        check_flags(work)
    output(os.path.join(ROOT, 'config/build-deb'), '--output', place, '--build', work, *words)
    assert os.path.exists(beside) and os.path.exists(foreign), os.listdir(work)
    packages = {name.split('_')[0]: os.path.join(place, name) for name in sorted(os.listdir(place))
                if name.endswith('.deb')}
    assert set(packages) == set(PACKAGES), packages
    tree = os.path.join(place, 'tree')
    for name, package in packages.items():
        check_contents(name, package)
        output('dpkg-deb', '-x', package, tree)
    check_together(place, packages.values())
    check_linked(place, packages)
    check_scripts(place, packages)
    check_upgrade(place, packages['softhca-verbs'])
    check_alone(packages)
    check_lintian(packages)
    check_hardened(tree)
    libraries = glob.glob(os.path.join(tree, 'usr/lib/*/libsofthca.so.0'))
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(libraries[0]))
    check_dev(tree, env)
    check_verbs(place, tree, packages['softhca-verbs'])
    check_daemon(tree, env)


def check_contents(name, package):
    files = contents(package)
    for path in PACKAGES[name]:
        pattern = re.escape(path)
        for word, folder in FOLDERS.items():
            pattern = re.sub('^' + word, lambda _, folder=folder: folder, pattern)
        assert [file for file in files if re.fullmatch(pattern, file)], '%s is not in %s' % (path, package)


def check_daemon(tree, env):
    daemon = os.path.join(tree, 'usr/sbin/softhcad')
    said = output(daemon, '-c', os.path.join(tree, 'usr/share/doc/softhca/examples/memif-a.conf'),
                  '--check', env=env)
    assert said.endswith('good\n'), said
    said = subprocess.run([daemon, '-c', os.path.join(tree, 'etc/softhca/softhcad.conf'),
                           '--check'], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', timeout=60, check=False)
    assert said.returncode != 0 and 'set device = ' in said.stdout, said


def main():
    missing = [name for name in ('dpkg-buildpackage', 'dh', 'meson', 'ninja', 'pkg-config')
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
