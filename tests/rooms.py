# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of the tree in one order: a room uses earlier rooms only.

Room A uses room B when a file of A includes a header of B, or when an object of A has an undefined
symbol that an object of B defines. Function pointers that are handed over at run time do not count.
Objects are those of the builds without link time optimization in the folder build; an object that
is older than its source says nothing.
"""
import glob
import json
import os
import re
import subprocess

ROOMS = [
    'include', 'src/abi', 'src/cpuyield', 'src/sigbus', 'src/finding',
    'src/device',  # hca.h: the device as others see it
    'src/device/core', 'src/device/wire', 'src/device/port', 'src/device/bar', 'src/device/ctxmgt',
    'src/device/vtp', 'src/device/queues', 'src/device/engine',
    'src/device/cc', 'src/device/requester', 'src/device/responder', 'src/device/ub', 'src/device/ub/tp', 'src/device/ub/initiator',
    'src/device/ub/target', 'src/device/frame', 'src/device/ub/frame', 'src/device/ceu', 'src/device/ub/ceu',
    'src/device/wireops', 'src/device/graph',
    'src/driver', 'src/cm/core', 'src/cm/ib', 'src/cm/ub', 'src/cm/ping', 'src/cmagent/core', 'src/cmagent/ib',
    'src/cmagent/ub', 'src/ipc/channel', 'src/lib', 'src/ipc/client', 'src/urma', 'src/host', 'src/telemetry',
    'src/embed', 'src/ipc/server', 'src/kernif', 'src/endpoint',
    'src/sysfs', 'src/verbs', 'apps',
]

# The budget of uses of a later room, as (file, file of the later room). It only falls: an entry that is no
# longer needed is a complaint.
UP = set()

# The files of src/device outside src/device/ub that name UB. It only falls, as UP does. A wire is a row of
# src/device/wireops; other files ask the row. Lists with a row or a column for each wire: stage.h, object.h,
# icrc.h and icrc.c.
NAMES_UB = {
    'src/device/core/core.h',
    'src/device/core/counters.h',
    'src/device/core/stage.h',
    'src/device/core/wires.h',
    'src/device/engine/object.h',
    'src/device/hca.h',
    'src/device/wire/icrc.c',
    'src/device/wire/icrc.h',
    'src/device/wire/opcode_set.c',
    'src/device/wire/ub_frame.c',
    'src/device/wire/ub_frame.h',
    'src/device/wire/ub_opcode.c',
    'src/device/wire/ub_opcode.h',
    'src/device/wireops/wire_ub.c',
}

UB = re.compile(r'\bub\b|UB_|_ub_|HCA_UB|->ub|_is_ub\b|WIRE_UB\b')

# Folders that includes start from.
STARTS = ['include', 'src/device'] + ROOMS

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.M)


def room_of(path):
    """The index of the innermost room a file is in, or -1."""
    folder = os.path.dirname(path)
    while folder and folder not in ROOMS:
        folder = os.path.dirname(folder)
    return ROOMS.index(folder) if folder else -1


def included(tree, path):
    for name in INCLUDE.findall(tree.text(path)):
        for folder in [os.path.dirname(path)] + STARTS:
            target = os.path.normpath(os.path.join(folder, name))
            if tree.exists(target):
                yield target
                break


def objects(root):
    """(source, object) of the builds that nm can read."""
    for database in glob.glob(os.path.join(root, 'build', '*', 'compile_commands.json')):
        build = os.path.dirname(database)
        with open(database, encoding='utf-8') as file:
            commands = json.load(file)
        for command in commands:
            source = os.path.normpath(os.path.join(command['directory'], command['file']))
            built = os.path.join(build, command.get('output', ''))
            if '-flto' not in command['command'] and os.path.isfile(built) and \
                    os.path.exists(source) and os.path.getmtime(built) > os.path.getmtime(source):
                yield os.path.relpath(source, root), built


# It defines functions of the C library, which everything needs.
INTERPOSED = {'src/sysfs/sysfs_calls.c'}


def symbols(all_built):
    """Of each object its path, names it defines, and names it needs; by one nm for many."""
    for i in range(0, len(all_built), 200):
        some = all_built[i:i + 200]
        # the kind of a symbol is the word before its name; each line begins with "PATH:"
        text = subprocess.run(['nm', '-g', '-A', *some], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding='utf-8').stdout
        found = {built: (set(), set()) for built in some}
        for line in text.splitlines():
            built, _, rest = line.rpartition(':')
            words = rest.split()
            if words[-2] in 'TDBRC':
                found[built][0].add(words[-1])
            elif words[-2] == 'U':
                found[built][1].add(words[-1])
        for built, (ours, theirs) in found.items():
            yield built, ours, theirs


def uses(tree):
    """(source, target, text) of all uses between files of rooms that includes and objects show."""
    for path in tree.c_files:
        for target in included(tree, path):
            if room_of(path) > -1:
                yield path, target, 'includes %s' % target
    defined, needed = {}, {}
    sources = {built: source for source, built in objects(tree.root) if room_of(source) >= 0}
    for built, ours, theirs in symbols(list(sources)):
        source = sources[built]
        if source not in INTERPOSED:
            defined.update((name, source) for name in ours)
        needed.setdefault(source, set()).update(theirs)
    for source, names in sorted(needed.items()):
        for name in sorted(names & defined.keys()):
            yield source, defined[name], 'needs %s of %s' % (name, defined[name])


def names_of_ub(tree):
    named = {path for path in tree.c_files if path.startswith('src/device/') and
             not path.startswith('src/device/ub/') and UB.search(tree.text(path))}
    for path in sorted(named - NAMES_UB):
        yield '%s: names UB; the row of a wire has what differs (src/device/engine/wire_ops.h)' % path
    for path in sorted(NAMES_UB - named):
        yield 'tests/rooms.py: NAMES_UB has %s, which does not name UB' % path


def complaints(tree):
    yield from names_of_ub(tree)
    seen = set()
    for source, target, text in uses(tree):
        if room_of(source) < room_of(target):
            seen.add((source, target))
            if (source, target) not in UP:
                yield '%s: %s, of a later room' % (source, text)
    for source, target in sorted(UP - seen):
        # definitions of a .c file are seen only where both are built
        if target.endswith('.h') or not tree.exists(target) or not tree.exists(source):
            yield 'tests/rooms.py: UP has %s and %s, which is not needed' % (source, target)
