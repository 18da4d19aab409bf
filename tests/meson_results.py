# SPDX-License-Identifier: BSD-3-Clause
"""Between tests/run and meson: which tests to run, and their results.

meson_results.py select BUILD-DIR FILTER QUICK GLOB...  prints the names of the tests to run
meson_results.py names BUILD-DIR NAME                   prints the test NAME, or those that contain it
meson_results.py programs BUILD-DIR GLOB...             prints the ninja targets they start
meson_results.py record LOG TAG RESULTS NAME...         adds a line per test to RESULTS, and how each
                                                        that failed ended to RESULTS.said
meson_results.py times LOG                              prints tests and seconds of each level, and the
                                                        longest test
meson_results.py cpu LOG TIMES [SUM]                    prints tests and CPU seconds of each level, then of
                                                        each test, from the file that tests/tidy wrote to
                                                        $TIDY_TIMES; with a third word the sum alone

A GLOB with a '-' before it leaves out its matches; one with a '+' before it also takes tests of suite 'long'
with QUICK.
"""
import fnmatch
import json
import os
import subprocess
import sys

# meson's words; a test that should fail and does is a test that passed
OUTCOMES = {'OK': 'pass', 'EXPECTEDFAIL': 'pass', 'SKIP': 'skip'}
LINES_SAID = 30  # the end of the output of a failed test


def matches(name, globs):
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def tests_of(build, globs):
    listing = subprocess.run(['meson', 'introspect', '--tests', build], check=True,
                             stdout=subprocess.PIPE, encoding='utf-8').stdout
    for test in json.loads(listing):
        if matches(test['name'], [glob.lstrip('+') for glob in globs if not glob.startswith('-')]) and \
                not matches(test['name'], [glob[1:] for glob in globs if glob.startswith('-')]):
            yield test


def select(build, pattern, quick, globs):
    also = [glob[1:] for glob in globs if glob.startswith('+')]
    for test in tests_of(build, globs):
        suites = [suite.split(':')[-1] for suite in test['suite']]
        if quick and 'long' in suites and not matches(test['name'], also):
            continue
        if fnmatch.fnmatchcase(test['name'], '*' + pattern + '*'):
            print(test['name'])


def names(build, name):
    known = [test['name'] for test in tests_of(build, ['*'])]
    chosen = [name] if name in known else fnmatch.filter(known, '*' + name + '*')
    print('\n'.join(chosen), end='\n' if chosen else '')


def programs(build, globs):
    build = os.path.realpath(build)
    started = {os.path.relpath(test['cmd'][0], build) for test in tests_of(build, globs)}
    print('\n'.join(sorted(program for program in started if not program.startswith('..'))))


def said(test):
    """Its result, and the end of its output."""
    lines = [line for part in ('stdout', 'stderr') for line in test.get(part, '').split('\n') if line]
    return '\n'.join([test['result']] + lines[-LINES_SAID:])


def name_of(test):
    return test['name'].split(' / ')[-1].split(':')[-1]


def times(log):
    """A level is the first word of a test's name, that of its folder. Seconds are those between start
    and end: tests that run at the same time count each."""
    levels = {}
    with open(log, encoding='utf-8', errors='replace') as lines:
        for test in map(json.loads, lines):
            levels.setdefault(name_of(test).split('-')[0], []).append((test['duration'], name_of(test)))
    print('%-10s %6s %8s  %s' % ('level', 'tests', 'seconds', 'longest'))
    for level, tests in sorted(levels.items(), key=lambda item: -len(item[1])):
        seconds, longest = max(tests)
        print('%-10s %6d %8.1f  %s, %.1f' % (level, len(tests), sum(test[0] for test in tests), longest, seconds))


def command_of(test):
    """The words that tests/tidy was given."""
    words = test['command']
    at = next((i for i, word in enumerate(words) if os.path.basename(word) == 'tidy'), -1)
    return ' '.join(words[at + 1:]).replace('\n', ' ')


def cpu_of(log, times):
    """{name: CPU seconds}. Tests of the same command, with other environments, are in the order of their ends in
    both files."""
    used, names = {}, {}
    with open(times, encoding='utf-8', errors='replace') as lines:
        for line in lines:
            seconds, _, command = line.rstrip('\n').partition('\t')
            used.setdefault(command, []).append(float(seconds))
    with open(log, encoding='utf-8', errors='replace') as lines:
        for test in map(json.loads, lines):
            names.setdefault(command_of(test), []).append(name_of(test))
    return {name: seconds for command, same in names.items()
            for name, seconds in zip(same, used.get(command, [])[-len(same):])}


def cpu(log, times, only_sum):
    tests, levels = cpu_of(log, times), {}
    together = '%d tests, %.0f CPU s' % (len(tests), sum(tests.values()))
    if only_sum:
        print(together)
        return
    for name, seconds in tests.items():
        levels.setdefault(name.split('-')[0], []).append((seconds, name))
    print('%-10s %6s %8s  %s' % ('level', 'tests', 'CPU s', 'most of it'))
    for level, each in sorted(levels.items(), key=lambda item: -sum(test[0] for test in item[1])):
        most = ', '.join('%s %.1f' % (name.partition('-')[2], seconds)
                         for seconds, name in sorted(each, reverse=True)[:5])
        print('%-10s %6d %8.1f  %s' % (level, len(each), sum(test[0] for test in each), most))
    print('together: ' + together)
    for name, seconds in sorted(tests.items(), key=lambda item: -item[1]):
        print('%8.2f  %s' % (seconds, name))


def record(log, tag, results, names):
    outcomes, failed = {}, {}
    try:
        with open(log, encoding='utf-8', errors='replace') as lines:
            for line in lines:
                test = json.loads(line)
                name = name_of(test)
                outcomes[name] = OUTCOMES.get(test['result'], 'fail')
                if outcomes[name] == 'fail':
                    failed[name] = said(test)
    except (OSError, ValueError) as error:
        print('meson left no readable log:', error, file=sys.stderr)
    with open(results, 'a', encoding='utf-8') as out:
        for name in names:
            # a test meson says nothing about did not pass
            out.write('%s\t%s [%s]\n' % (outcomes.get(name, 'fail'), name, tag))
    with open(results + '.said', 'a', encoding='utf-8') as out:
        for name, words in failed.items():
            out.write('== %s [%s] ended with:\n%s\n' % (name, tag, words))


def main():
    if sys.argv[1] == 'select':
        select(sys.argv[2], sys.argv[3], sys.argv[4] == '1', sys.argv[5:])
    elif sys.argv[1] == 'names':
        names(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == 'programs':
        programs(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == 'times':
        times(sys.argv[2])
    elif sys.argv[1] == 'cpu':
        cpu(sys.argv[2], sys.argv[3], len(sys.argv) > 4)
    else:
        record(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])


main()
