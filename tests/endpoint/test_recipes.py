#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Recipes for other systems: the step of GitHub Actions, the files for Kubernetes, rpm and Arch packages.

test_recipes.py ROOT BUILD SOFTHCAD [unittest arguments]

Files that cannot be run here (a cluster, Fedora, Arch) are read: required fields, names that must agree, and
that every installed file is in a package. The scripts of the action run, with programs of their own in
place of apt-get and curl.
"""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT, BUILD, SOFTHCAD = [os.path.abspath(word) for word in sys.argv[1:4]]
CONFIG = os.path.join(ROOT, 'config')
LIMIT_S = 120
STUB = '''#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
'''
# Writes the file of -o
STUB_CURL = STUB + '''while [ "$1" != -o ]; do shift; done
echo package >"$2"
'''


def read(*path):
    with open(os.path.join(CONFIG, *path), encoding='utf-8') as file:
        return file.read()


def parsed(*path):
    return [part for part in yaml.safe_load_all(read(*path)) if part]


def version():
    return json.loads(subprocess.run(['meson', 'introspect', '--projectinfo', BUILD], check=True,
                                     stdout=subprocess.PIPE).stdout)['version']


class Folder(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(yaml, 'python3-yaml is missing: config/setup --tests')
        context = tempfile.TemporaryDirectory(prefix='softhca-recipes-')
        self.place = context.name
        self.addCleanup(context.cleanup)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, mode)
        return path


class Action(Folder):
    def setUp(self):
        super().setUp()
        self.action, = parsed('action', 'action.yml')
        for name in 'apt-get', 'sudo':
            self.write('bin/' + name, STUB, 0o755)
        self.write('bin/curl', STUB_CURL, 0o755)
        self.calls = os.path.join(self.place, 'calls')

    def step(self, number, given, **more):
        """Runs a step as the runner does; (exit status, output, calls of the stubs)"""
        step = self.action['runs']['steps'][number]
        inputs = {name: value.get('default', '') for name, value in self.action['inputs'].items()}
        inputs.update(given)
        context = {'github.action_ref': 'v0.2.0', 'github.action_repository': 'owner/softhca',
                   **{'inputs.' + name: value for name, value in inputs.items()}}

        def value_of(match):
            values = [context[name.strip()] for name in match.group(1).split('||')]
            return next((value for value in values if value), '')
        env = {name: re.sub(r'\$\{\{(.*?)\}\}', value_of, value) for name, value in step['env'].items()}
        env.update({'GITHUB_ACTION_PATH': os.path.join(CONFIG, 'action'), 'CALLS': self.calls,
                    'GITHUB_SERVER_URL': 'https://server.example', 'HOME': self.place,
                    'PATH': os.path.join(self.place, 'bin') + ':' + os.environ['PATH']})
        env.update(more)
        self.assertEqual(step['shell'], 'bash')
        script = self.write('step.sh', step['run'])
        run = subprocess.run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', script], env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             encoding='utf-8', timeout=LIMIT_S, check=False)
        calls = ''
        if os.path.exists(self.calls):
            with open(self.calls, encoding='utf-8') as file:
                calls = file.read()
            os.unlink(self.calls)
        return run.returncode, run.stdout, calls

    def install(self, system, given):
        release = self.write('os-release', system)
        return self.step(0, {'run': 'true', **given}, OS_RELEASE=release)

    def test_fields(self):
        self.assertEqual(self.action['runs']['using'], 'composite')
        for name, value in self.action['inputs'].items():
            self.assertTrue(value['description'], name)
            self.assertIn('inputs.' + name, read('action', 'action.yml'))

    def test_release(self):
        """The files that config/build-deb has made on this release, of the tag of the action"""
        for system in '12', '13':
            status, said, calls = self.install('ID=debian\nVERSION_ID="%s"\n' % system, {})
            self.assertEqual(status, 0, said)
            arch = subprocess.run(['dpkg', '--print-architecture'], stdout=subprocess.PIPE,
                                  encoding='ascii', check=True).stdout.strip()
            self.assertIn('https://server.example/owner/softhca/releases/download/v0.2.0/'
                          'softhca-run_0.2.0-1.deb%s_%s.deb\n' % (system, arch), calls)
            self.assertIn('/softhca-run_0.2.0-1~deb%s_%s.deb ' % (system, arch), calls)
            installed = re.search(r'^.*apt-get .*install (.*\.deb)$', calls, re.M).group(1)
            self.assertEqual(len(installed.split()), 6, calls)

    def test_wrong_release(self):
        for system, given, text in (('ID=ubuntu\nVERSION_ID="24.04"\n', {}, 'this is ubuntu24.04'),
                                    ('ID=debian\nVERSION_ID="12"\n', {'release': 'main'},
                                     'expected a number like 0.2.0, found "main"')):
            status, said, _ = self.install(system, given)
            self.assertEqual(status, 1, said)
            self.assertRegex(said, '(?m)^::error::softhca: .*' + text)

    def test_folder(self):
        for name in ('libsofthca0', 'libsofthca-urma0', 'libsofthca-embed0', 'libsofthca-dev', 'softhca',
                     'softhca-run'):
            self.write('packages/%s_1_all.deb' % name, '')
        status, said, calls = self.install('ID=ubuntu\n', {'packages': self.place + '/packages'})
        self.assertEqual(status, 0, said)
        self.assertNotIn('curl', calls)
        self.assertIn(self.place + '/packages/softhca-run_1_all.deb', calls)
        status, said, _ = self.install('ID=debian\n', {'packages': self.place})
        self.assertEqual(status, 1)
        self.assertIn('::error::softhca: packages: no libsofthca0 in ' + self.place, said)

    def test_several(self):
        """Of several files of a package the one for this system, then the highest version; the image
        chooses the same."""
        names = {'12': 'softhca_0.2.10-1~deb12_all.deb', '13': 'softhca_0.2.10-1.deb13_all.deb'}
        packages = os.path.join(self.place, 'packages')
        for name in ('softhca_0.2.9-1~deb12_all.deb', 'softhca_0.2.9-1~deb13_all.deb', *names.values()):
            self.write('packages/' + name, '')
        script = os.path.join(CONFIG, 'container', 'install')
        for given, name in (('ID=debian\nVERSION_ID="12"\n', names['12']),
                            ('ID=debian\nVERSION_ID="13"\n', names['13']),
                            ('ID=debian\nVERSION_ID="14"\n', None), ('ID=ubuntu\n', None)):
            env = {**os.environ, 'OS_RELEASE': self.write('os-release', given)}
            run = subprocess.run(['sh', script, '--list', packages, 'softhca'], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, encoding='utf-8', check=False)
            expected = packages + '/' + name if name else \
                'softhca in %s is for other releases of Debian than this system' % packages
            self.assertEqual((run.returncode, run.stdout), (0 if name else 1, expected + '\n'))
        for name in ('libsofthca0', 'libsofthca-urma0', 'libsofthca-embed0', 'libsofthca-dev', 'softhca-run'):
            self.write('packages/%s_1_all.deb' % name, '')
        status, said, calls = self.install('ID=debian\nVERSION_ID="12"\n', {'packages': packages})
        self.assertEqual(status, 0, said)
        self.assertIn(' %s/%s ' % (packages, names['12']), calls)

    def command(self, text, **given):
        path = os.path.join(BUILD, 'apps') + ':' + os.environ['PATH']
        return self.step(1, {'run': text, **given}, PATH=path, XDG_RUNTIME_DIR=self.place)

    def test_run(self):
        if not os.path.exists(os.path.join(BUILD, 'apps', 'softhca-run')):
            self.skipTest('this build has no softhca-run')
        status, said, _ = self.command('set -u\nsofthca-ctl devices | sed s/own/is/\n')
        self.assertEqual(status, 0, said)
        self.assertRegex(said, '(?m)^is +[0-9a-f]{16}')
        status, said, _ = self.command('softhca-ctl devices; exit 7', impair='drop=0.01,seed=7')
        self.assertEqual(status, 7, said)
        self.assertRegex(said, '(?m)^own[0-9]+ +[0-9a-f]{16}')
        status, said, _ = self.command('true', impair='lose=1')
        self.assertEqual(status, 2, said)
        self.assertRegex(said, '(?m)^softhca-run: --impair: .*lose')

    def test_workflow(self):
        workflow, = parsed('action', 'example.yml')
        self.assertIn(True, workflow)  # "on", as YAML 1.1 has it
        steps = workflow['jobs']['rdma']['steps']
        used, = [step for step in steps if '/config/action@' in step.get('uses', '')]
        self.assertTrue(used['uses'].endswith('@v' + version()), used['uses'])
        self.assertLessEqual(set(used['with']), set(self.action['inputs']))
        required = {name for name, value in self.action['inputs'].items() if value.get('required')}
        self.assertLessEqual(required, set(used['with']))
        self.assertIn('', workflow['jobs']['rdma']['strategy']['matrix']['network'])
        for step in steps:
            self.assertEqual(len({'run', 'uses'} & set(step)), 1, step)


class Kubernetes(Folder):
    def setUp(self):
        super().setUp()
        self.objects = {part['kind']: part for part in parsed('kubernetes', 'daemonset.yaml')}
        self.pod, = parsed('kubernetes', 'pod.yaml')

    def pods(self):
        return self.objects['DaemonSet']['spec']['template']['spec'], self.pod['spec']

    def test_fields(self):
        kinds = {'Namespace': 'v1', 'ConfigMap': 'v1', 'DaemonSet': 'apps/v1', 'Pod': 'v1'}
        for kind, part in {**self.objects, 'Pod': self.pod}.items():
            self.assertEqual(part['apiVersion'], kinds[kind])
            self.assertRegex(part['metadata']['name'], '^[a-z0-9-]+$')
            if kind != 'Namespace':
                self.assertEqual(part['metadata']['namespace'], self.objects['Namespace']['metadata']['name'])
        daemons = self.objects['DaemonSet']['spec']
        self.assertEqual(daemons['selector']['matchLabels'], daemons['template']['metadata']['labels'])

    def test_containers(self):
        for pod in self.pods():
            volumes = {volume['name']: volume for volume in pod['volumes']}
            for container in pod['containers']:
                self.assertTrue(container['name'] and container['image'].endswith(':' + version()))
                self.assertTrue(all(isinstance(word, str) for word in container['command']))
                for mount in container['volumeMounts']:
                    self.assertIn(mount['name'], volumes)
                    self.assertTrue(mount['mountPath'].startswith('/'))
            for volume in volumes.values():
                self.assertEqual(len(volume), 2, volume)
        maps = [volume['configMap']['name'] for volume in self.pods()[0]['volumes'] if 'configMap' in volume]
        self.assertEqual(maps, [self.objects['ConfigMap']['metadata']['name']])

    def test_shared(self):
        """One folder of the node for the daemon and its programs, which put no socket of theirs there"""
        paths = [[volume['hostPath']['path'] for volume in pod['volumes'] if 'hostPath' in volume]
                 for pod in self.pods()]
        self.assertEqual(paths, [['/run/softhca'], ['/run/softhca']])
        self.assertEqual([mount.get('readOnly', False) for pod in self.pods()
                          for mount in pod['containers'][0]['volumeMounts'] if mount['name'] == 'sockets'],
                         [False, True])

    def test_rights(self):
        """The capabilities of the unit of systemd; none for programs"""
        unit = re.search('^CapabilityBoundingSet=(.*)$', read('softhcad.service.in'), re.M).group(1)
        daemon, program = [pod['containers'][0]['securityContext'] for pod in self.pods()]
        self.assertEqual({'CAP_' + name for name in daemon['capabilities']['add']}, set(unit.split()))
        self.assertEqual(program['capabilities'], {'drop': ['ALL']})
        self.assertIs(program['allowPrivilegeEscalation'], False)

    def test_configuration(self):
        """As the container's command makes it, on an interface that is here"""
        text = self.objects['ConfigMap']['data']['softhcad.conf']
        self.assertIn('iface=eth0', text)
        path = self.write('etc/softhcad.conf', text.replace('iface=eth0', 'iface=lo'))
        container = self.pods()[0]['containers'][0]
        command = container['command'][-1].replace('/etc/softhcad/softhcad.conf', path)
        command = command.replace('/tmp/softhcad.conf', self.place + '/made.conf')
        command = command.replace('exec softhcad', 'exec "$SOFTHCAD" --check')
        run = subprocess.run(['sh', '-c', command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, 'NODE_IP': '10.0.0.77', 'SOFTHCAD': SOFTHCAD},
                             encoding='utf-8', timeout=LIMIT_S, check=False)
        self.assertRegex(run.stdout, '(?m)(good|sufficient)$')
        with open(self.place + '/made.conf', encoding='utf-8') as file:
            self.assertIn('address = 192.0.2.77/24\n', file.read())


    def test_runs(self):
        """The daemon with its configuration and its capabilities alone, on a loop in place of an
        interface; the program in a container without rights, which does not see the daemon's processes."""
        run = os.path.join(BUILD, 'apps', 'softhca-run')
        example = os.path.join(BUILD, 'examples', 'verbs_write')
        if os.geteuid() != 0 or not (os.path.exists(run) and os.path.exists(example)):
            self.skipTest('needs root and the example of verbs')
        if options()['b_sanitize'] != 'none':
            self.skipTest('a checker of leaks does not run in such a container')
        if subprocess.run(['unshare', '--pid', '--fork', '--mount-proc', 'true'], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest('no namespace of processes can be made here')
        text = self.objects['ConfigMap']['data']['softhcad.conf']
        text = text.replace('net_af_packet0,iface=eth0', 'net_ring0').replace('@NODE@', '7')
        text = text.replace('[control]', '[control]\nsocket = %s/node.sock' % self.place)
        os.chmod(self.place, 0o755)
        daemon = self.pods()[0]['containers'][0]
        rights = ',+'.join(['-all'] + daemon['securityContext']['capabilities']['add']).lower()
        process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', '--bounding-set', rights, SOFTHCAD, '-c',
                                    self.write('node.conf', text)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, encoding='utf-8')
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = ''
        while 'ready' not in said:
            line = process.stdout.readline()
            self.assertTrue(line, said)
            said += line
        words = self.pod['spec']['containers'][0]['command']
        self.assertEqual(words[:3], ['softhca-run', '--directory', '/run/softhca'])
        mount, = self.pod['spec']['containers'][0]['volumeMounts']
        script = 'mount -o bind,%s "$0" "$0" && exec "$@"' % ('ro' if mount.get('readOnly') else 'rw')
        client = subprocess.run(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', script,
                                 self.place, sys.executable, os.path.join(ROOT, 'tests/verbs/container.py'), run,
                                 '--directory', self.place, example], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding='utf-8', timeout=LIMIT_S, check=False)
        if 'ermission denied' in client.stdout and client.returncode in (1, 126, 127):
            self.skipTest('an ordinary user cannot read this build: ' + client.stdout)
        self.assertEqual((client.returncode, client.stdout), (0, 'node: written by verbs\n'))


class Packaging(Folder):
    def test_spec(self):
        """It parses, for this release, and each installed file is in one package."""
        if shutil.which('rpmspec') is None:
            self.skipTest('rpmspec is not here (package rpm)')
        where = {'_libdir': '/usr/LIB', '_unitdir': '/usr/lib/systemd/system', '_sysconfdir': '/etc',
                 '_docdir': '/usr/share/doc'}
        words = [word for name, path in where.items() for word in ('--define', '%s %s' % (name, path))]
        run = subprocess.run(['rpmspec', *words, '-P', os.path.join(CONFIG, 'packaging', 'softhca.spec')],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, '(?m)^Version: +%s$' % re.escape(version()))
        patterns = re.findall(r'^(?:%config\S* )?(/\S+)$', run.stdout.split('%files', 1)[1], re.M)
        for path in installed():
            found = [pattern for pattern in patterns
                     if fnmatch.fnmatchcase(path, pattern) or path.startswith(pattern + '/')]
            self.assertEqual(len(found), 1, path)

    def test_pkgbuild(self):
        script = '''set -eu
. "$1"
printf '%s\\n' "$pkgver" "$pkgrel" "$pkgdesc" "${arch[*]}" "${license[*]}" "${#source[@]} ${#sha256sums[@]}"
declare -F build package_softhca package_softhca-verbs
'''
        run = subprocess.run(['bash', '-c', script, 'check', os.path.join(CONFIG, 'packaging', 'PKGBUILD')],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(run.stdout.split('\n')[0], version())
        self.assertIn('\n1 1\n', run.stdout)

    def test_marked(self):
        for name in 'softhca.spec', 'PKGBUILD':
            self.assertIn('UNTRIED', read('packaging', name).split('\n\n')[0])


def options():
    """The options of this build"""
    said = subprocess.run(['meson', 'introspect', '--buildoptions', BUILD], check=True, stdout=subprocess.PIPE)
    return {option['name']: option['value'] for option in json.loads(said.stdout)}


def installed():
    """Of this build, with the folder of libraries as /usr/LIB"""
    paths = json.loads(subprocess.run(['meson', 'introspect', '--installed', BUILD], check=True,
                                      stdout=subprocess.PIPE).stdout)
    here = options()
    for path in sorted(paths.values()):
        path = os.path.join('/usr', os.path.relpath(path, here['prefix']))
        folder = os.path.join('/usr', here['libdir']) + '/'
        if path.startswith(folder):
            path = '/usr/LIB/' + path[len(folder):]
        if path != '/usr/LIB/softhca/libibverbs.so':
            yield path


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
