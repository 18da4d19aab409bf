# SPDX-License-Identifier: BSD-3-Clause
"""Daemons, network namespaces and clean-up for the tests of the endpoint."""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SMALL = {
    'memory': {'hugepages': 'never', 'size_mb': 256, 'slow_memory': 'yes'},
    'limits': {'log_qps': 8, 'log_cqs': 8, 'log_srqs': 6, 'log_mpts': 12, 'log_mtts': 16},
    'pools': {'mbufs': 2048},
    'admin': {'impair': 'yes'},
}
READY_S = 240  # a loaded machine is slow; a longer run counts as hung
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In a child, before it becomes the program: a test that is killed leaves no process."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Skip(Exception):
    """Cannot run here; says why."""


def merged(*parts):
    out = {}
    for part in parts:
        for section, keys in part.items():
            out.setdefault(section, {}).update(keys)
    return out


def write_config(path, config):
    """config: {section: {key: value or list of values}}"""
    with open(path, 'w', encoding='utf-8') as file:
        for section, keys in config.items():
            file.write('[%s]\n' % section)
            for key, value in keys.items():
                for each in value if isinstance(value, list) else [value]:
                    file.write('%s = %s\n' % (key, each))


def threads_of(pid):
    """The wait of each thread of a process, in words."""
    said = []
    for thread in sorted(os.listdir('/proc/%d/task' % pid)):
        words = []
        for name in ('comm', 'wchan', 'syscall'):
            with contextlib.suppress(OSError):
                with open('/proc/%d/task/%s/%s' % (pid, thread, name), encoding='ascii') as file:
                    words.append(file.read().strip())
        said.append(' '.join([thread] + words))
    return '\n'.join(said)


def names_of_threads(pid):
    names = []
    for thread in os.listdir('/proc/%d/task' % pid):
        with contextlib.suppress(OSError), open('/proc/%d/task/%s/comm' % (pid, thread), encoding='utf-8') as file:
            names.append(file.read().strip())
    return names


def ended(process, timeout=READY_S):
    """The exit status; a process that does not end is reported as hung, with the place."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired as error:
        where = threads_of(process.pid)
        process.kill()
        process.wait()
        raise AssertionError('%s does not end; its threads:\n%s' % (process.args, where)) from error


def telemetry_socket(runtime_dir):
    """DPDK accepts one connection at a time: a connect() without waiting fails until it has."""
    end = time.monotonic() + READY_S
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.settimeout(READY_S)
        while True:
            try:
                s.connect(os.path.join(runtime_dir, 'dpdk_telemetry.v2'))
                return s
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)
    except BaseException:
        s.close()
        raise


def ctl(*words, **options):
    """A finished softhca-ctl, given with its path; again while a daemon has no CPU for the 10 s which
    softhca-ctl waits for the greeting."""
    end = time.monotonic() + READY_S
    while True:
        run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8', timeout=READY_S,
                             check=False, **options)
        if 'does not answer within' not in run.stdout + run.stderr or time.monotonic() > end:
            return run


class Daemon:
    """softhcad on a configuration of its own in folder `place`."""

    def __init__(self, binary, place, name, device, addresses, *parts, prefix=(), user=None):
        self.name = name
        self.place = place
        self.config = os.path.join(place, name + '.conf')
        self.socket = os.path.join(place, name + '.sock')
        self.log = os.path.join(place, name + '.log')
        self.notify_path = os.path.join(place, name + '.notify')
        self.notify = None
        self.process = None
        self.command = list(prefix) + [binary, '-c', self.config]
        self.user = user
        write_config(self.config, merged(
            SMALL, {'hca': {'name': name}, 'port': {'device': device},
                    'addresses': {'address': addresses},
                    'control': {'socket': self.socket}}, *parts))

    def start(self, wait=True, env=None):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.notify_path)
        if self.notify is not None:
            self.notify.close()
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        os.chmod(self.notify_path, 0o777)
        environment = dict(os.environ, NOTIFY_SOCKET=self.notify_path, **(env or {}))
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=environment, user=self.user,
                                            extra_groups=[] if self.user is not None else None,
                                            preexec_fn=die_with_parent)
        if wait:
            self.wait_for('READY=1')
        return self

    def wait_for(self, word, timeout=READY_S):
        """Until systemd would receive `word`."""
        deadline = time.monotonic() + timeout
        self.notify.settimeout(0.1)
        while time.monotonic() < deadline:
            try:
                if word in self.notify.recv(4096).decode():
                    return
            except TimeoutError:
                if self.process.poll() is not None:
                    break
        raise AssertionError('%s: no %s; log:\n%s' % (self.name, word, self.text()))

    def text(self):
        with open(self.log, encoding='utf-8', errors='replace') as file:
            return file.read()

    def wait_log(self, words, timeout=READY_S, count=1):
        deadline = time.monotonic() + timeout
        while self.text().count(words) < count:
            if time.monotonic() > deadline or self.process.poll() is not None:
                ended = self.process.poll()
                raise AssertionError('%s%s: no "%s"; log:\n%s' % (
                    self.name, '' if ended is None else ', which ended with %d' % ended, words,
                    self.text()))
            time.sleep(0.02)

    def stop(self, number=signal.SIGTERM, timeout=READY_S):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return ended(self.process, timeout)
        except AssertionError as error:
            raise AssertionError('%s\n%s, log:\n%s' % (error, self.name, self.text())) from None

    def ask(self, command):
        """Answer of the telemetry socket; None: the command was refused."""
        name, end = command.split(',')[0], time.monotonic() + READY_S
        for path in self.runtime_dirs():
            while time.monotonic() < end:
                with telemetry_socket(path) as s:
                    if s.recv(1024) != b'':
                        s.send(command.encode())
                        return json.loads(s.recv(1 << 16).decode())[name]
                time.sleep(0.01)  # DPDK serves few at a time and hangs up on the others
        raise AssertionError('%s has no telemetry socket, or does not serve it' % self.name)

    def runtime_dirs(self):
        """Files that DPDK has made for it."""
        places = '/var/run', os.environ.get('XDG_RUNTIME_DIR', '/tmp'), '/tmp'
        return [path for path in [os.path.join(place, 'dpdk', self.name) for place in places]
                if os.path.isdir(path)]

    def suspend(self):
        """Returns when none of its threads runs any more."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for path in self.runtime_dirs():
            shutil.rmtree(path, ignore_errors=True)
        if self.notify is not None:
            self.notify.close()


def ip(*words, check=True):
    result = subprocess.run(('ip',) + words, stderr=subprocess.PIPE, encoding='utf-8', timeout=READY_S,
                            check=False)
    if check and result.returncode != 0:
        raise AssertionError('ip %s: %s' % (' '.join(words), result.stderr.strip()))
    return result.returncode == 0


class Namespaces:
    """Two network namespaces of this process joined by a veth pair: interface `wire` in each."""

    def __init__(self, mtu=4200):
        if os.geteuid() != 0:
            raise Skip('network namespaces need root')
        if shutil.which('ip') is None:
            raise Skip('the program ip is missing (package iproute2)')
        self.names = ['sh%d%s' % (os.getpid(), side) for side in 'ab']
        ends = ['shv%d%s' % (os.getpid(), side) for side in 'ab']
        try:
            for name in self.names:
                if not ip('netns', 'add', name, check=False):
                    raise Skip('no network namespace can be made here')
            ip('link', 'add', ends[0], 'type', 'veth', 'peer', 'name', ends[1])
            for name, end in zip(self.names, ends):
                ip('link', 'set', end, 'netns', name, 'name', 'wire')
                self.run(name, 'ip', 'link', 'set', 'lo', 'up')
                self.run(name, 'sysctl', '-q', '-w', 'net.ipv6.conf.wire.disable_ipv6=1')
                self.run(name, 'ip', 'link', 'set', 'wire', 'mtu', str(mtu), 'up')
        except BaseException:
            ip('link', 'del', ends[0], check=False)
            self.close()
            raise

    def run(self, name, *words, check=True):
        result = subprocess.run(('ip', 'netns', 'exec', name) + words, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding='utf-8', timeout=READY_S,
                                check=False)
        if check and result.returncode != 0:
            raise AssertionError('%s: %s' % (' '.join(words), result.stdout))
        return result.stdout

    def prefix(self, side):
        return ('ip', 'netns', 'exec', self.names[side])

    def close(self):
        for name in self.names:
            ip('netns', 'del', name, check=False)


@contextlib.contextmanager
def folder():
    """A place for sockets, configurations and logs that every user may enter."""
    place = tempfile.mkdtemp(prefix='softhca-')
    os.chmod(place, 0o777)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
