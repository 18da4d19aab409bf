# SPDX-License-Identifier: BSD-3-Clause
"""Completions for bash, zsh and fish, made of the programs' lists of options.

completion.py FOLDER NAME=PROGRAM...

softhca-perf lists its options by --list-options, the other programs by --help. Written into FOLDER:
softhca (bash, all programs), _softhca (zsh, all programs) and NAME.fish.
"""
import os
import re
import subprocess
import sys

SOCKETS = "ls /run/softhca 2>/dev/null | sed -n 's/\\.sock$//p'"
# Kind of a value, by its word: a file, a folder, a host, a daemon
KINDS = {'FILE': 'file', 'PATH': 'file', 'DIR': 'folder', 'HOST': 'host'}
DAEMONS = {'--device', '--prefix'}
# A command in the help of softhca-ctl: name, its arguments (lines that begin with a bracket, a bar
# or deeper), first line of its text; and an option there with its value
COMMAND = re.compile(r'^  ([a-z]+)((?:.*)(?:\n {8}[ \[|].*)*)\n {8}(\w.*)$', re.M)
VALUE = re.compile(r'--([a-z_-]+)(?: \[?([A-Z]+(?:\[?=[A-Z]+\]?)?|[a-z|]+\b)\]?)?')


class Option:
    def __init__(self, name, letter='', value='', choices='', text=''):
        self.name, self.letter, self.value = '--' + name, letter, value or ''
        self.choices = choices.split()
        self.text = re.sub(r'\s+', ' ', text).strip()
        self.kind = 'choice' if self.choices else KINDS.get(self.value, 'any' if self.value else '')
        if self.name in DAEMONS and not self.choices:
            self.kind = 'daemon'

    def spellings(self):
        return [self.name] + (['-' + self.letter] if self.letter else [])


class Program:
    """commands: [(name, text, options, words)]; runs: its first word is a command to complete."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.commands, self.runs = [], False
        self.options = {'softhca-perf': self.perf, 'softhca-ctl': self.ctl}.get(name, self.plain)()
        if len(self.options) < 4:
            sys.exit('%s names no options' % path)

    def said(self, word):
        return subprocess.run([self.path, word], stdout=subprocess.PIPE, encoding='utf-8',
                              timeout=60, check=True).stdout

    def perf(self):
        rows = [line.split('\t') for line in self.said('--list-options').splitlines()]
        return [Option(*row) for row in rows]

    def plain(self):
        """Lines like "  -c, --config FILE  text", which may go on in the next lines."""
        said = self.said('--help')
        found = re.findall(r'^ +(?:-(\w), +)?--([a-z-]+)(?: ([A-Z]+|[a-z0-9]+))?  +(.*(?:\n {8,}\S.*)*)',
                           said, re.M)
        self.runs = ' program [argument' in said
        options = []
        for letter, name, value, text in found:
            choices = value if value.islower() else ''
            text = re.split(r'; |: |(?<=\w)\. ', re.sub(r'\s+', ' ', text))[0]
            options.append(Option(name, letter, value, choices, text))
            for more in sorted(set(re.findall(r'--%s=([a-z]+)' % name, said))):
                options.append(Option('%s=%s' % (name, more), text='%s, by %s' % (text, more)))
        return options

    def ctl(self):
        """Commands with their options in brackets, then the options of all."""
        said = self.said('--help')
        commands, common = said.split('options of every command:')
        for name, usage, text in COMMAND.findall(commands):
            options = []
            for option, value in VALUE.findall(usage):
                choices = value.replace('|', ' ') if re.fullmatch(r'[a-z|]+', value) else ''
                options.append(Option(option, value='VALUE' if choices else value, choices=choices))
            bare = VALUE.sub('', usage)
            words = re.findall(r'\b[a-z]+\b', bare) + ['@file' for _ in re.findall(r'\bFILE\b', bare)]
            self.commands.append((name, text, options, words))
        return [Option(name, value=value, text=text) for name, value, text in
                re.findall(r'^  --([a-z]+)(?: ([A-Z]+))? +(\S.*)$', common, re.M)]


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


# ---- bash ----

BASH = r'''# SPDX-License-Identifier: BSD-3-Clause
# bash completion of @programs@; made by config/completion.py

# What may follow an option: words, or @file, @folder, @host, @daemon; @any: something unknown.
_softhca_values() { # PROGRAM [COMMAND] OPTION
	case $1:$2 in
@values@
	*) return 1 ;;
	esac
}

_softhca_words() { # PROGRAM [COMMAND]
	case $1 in
@words@
	esac
}

# The command of softhca-ctl, or the place of the program that softhca-run starts
_softhca_first() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*) ! _softhca_values "$1" "${COMP_WORDS[i]}" >/dev/null || ((i++)) ;;
		=) ((i++)) ;;
		*) echo $i; return ;;
		esac
	done
}

# Prints the lines of stdin that begin with CURRENT. They are names of others, which the shell must not
# expand, as compgen -W does.
_softhca_matching() { # CURRENT
	local line
	while IFS= read -r line; do
		[[ $line != "$1"* ]] || printf '%s\n' "$line"
	done
}

_softhca_reply() { # WORDS CURRENT
	local words=$1
	case $words in
	@file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;	# names may have blanks
	@folder) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	@host) mapfile -t COMPREPLY < <(compgen -A hostname -- "$2") ;;
	@any) COMPREPLY=() ;;
	@daemon) mapfile -t COMPREPLY < <(@sockets@ | _softhca_matching "$2") ;;
	*) COMPREPLY=($(compgen -W "$words" -- "$2")) ;;
	esac
}

_softhca() {
	local program=${1##*/} current=$2 previous=$3 first command= values word option=
	COMPREPLY=()
	first=$(_softhca_first "$program")
	case $program in
	softhca-ctl)
		[ -z "$first" ] || command=" ${COMP_WORDS[first]}" ;;
	softhca-run)
		if [ -n "$first" ]; then
			! declare -F _command_offset >/dev/null || _command_offset "$first"
			return
		fi
		# "=" is a word of its own
		[ "$current" != = ] || option=$previous
		[ "$previous" != = ] || option=${COMP_WORDS[COMP_CWORD - 2]}
		if [ -n "$option" ]; then
			values=
			for word in $(_softhca_words "$program"); do
				[[ $word != "$option"=* ]] || values+=" ${word#*=}"
			done
			_softhca_reply "$values" "${current#=}"
			return
		fi ;;
	esac
	if values=$(_softhca_values "$program$command" "$previous"); then
		_softhca_reply "$values" "$current"
	elif [[ $current == -* ]] || [ "$program" = softhca-ctl ]; then
		_softhca_reply "$(_softhca_words "$program$command")" "$current"
		[[ $current == -* ]] || [ "${#COMPREPLY[@]}" -gt 0 ] || _softhca_reply @file "$current"
	elif [ "$program" = softhca-run ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$current")
	else
		_softhca_reply @file "$current"
	fi
}

complete -o filenames -F _softhca @programs@
'''


def bash_values(option):
    return ' '.join(option.choices) or '@' + option.kind


def bash(programs):
    values, words = [], []
    for program in programs:
        groups = [(program.name, program.options)]
        groups += [('%s %s' % (program.name, name), options + program.options)
                   for name, _, options, _ in program.commands]
        for group, options in groups:
            for option in options:
                if option.kind:
                    names = '|'.join(quoted('%s:%s' % (group, name)) for name in option.spellings())
                    values.append('\t%s) echo %s ;;' % (names, quoted(bash_values(option))))
        for group, options in groups:
            more = [name for name, *_ in program.commands] if group == program.name else []
            for name, _, _, free in program.commands:
                if group == '%s %s' % (program.name, name):
                    more = [word for word in free if word != '@file']
            listed = [name for option in options for name in option.spellings()]
            words.append('\t%s) echo %s ;;' % (quoted(group), quoted(' '.join(more + listed))))
    text = BASH.replace('@values@', '\n'.join(values)).replace('@words@', '\n'.join(words))
    return text.replace('@sockets@', SOCKETS).replace('@programs@',
                                                      ' '.join(p.name for p in programs))


# ---- zsh ----

def zsh_action(option):
    actions = {'file': '_files', 'folder': '_files -/', 'host': '_hosts', 'daemon': '_softhca_daemons',
               'any': ' '}
    return '(%s)' % ' '.join(option.choices) if option.choices else actions[option.kind]


def zsh_option(option):
    text = re.sub(r'([\[\]:\\])', r'\\\1', option.text)
    rest = '[%s]' % text if text else ''
    if option.kind:
        rest += ':%s:%s' % (option.value.replace(':', '\\:') or 'value', zsh_action(option))
    if option.letter:
        return "'(-%s %s)'{-%s,%s}%s" % (option.letter, option.name, option.letter, option.name,
                                         quoted(rest))
    return quoted(option.name + rest)


def zsh_function(program):
    lines = ['_%s() {' % program.name.replace('-', '_')]
    options = [zsh_option(option) for option in program.options]
    if program.commands:
        lines += ['\tlocal context state state_descr line', '\ttypeset -A opt_args', '\tlocal -a commands',
                  '\tcommands=(']
        lines += ['\t\t' + quoted('%s:%s' % (name, text.replace(':', '\\:')))
                  for name, text, _, _ in program.commands]
        lines += ['\t)', "\t_arguments -C '(- *)--help[print help]' '(- *)--version[print the version]' \\",
                  "\t\t'1: :->command' '*:: :->rest'", '\tcase $state in',
                  "\tcommand) _describe command commands ;;", '\trest)', '\t\tcase $words[1] in']
        for name, _, own, free in program.commands:
            plain = [word for word in free if word != '@file']
            extra = [quoted('1:word:(%s)' % ' '.join(plain))] if plain else []
            extra += [quoted('1:file:_files')] if '@file' in free else []
            lines += ['\t\t%s) _arguments %s ;;' % (
                name, ' \\\n\t\t\t'.join([zsh_option(o) for o in own] + options + extra))]
        lines += ['\t\tesac ;;', '\tesac']
    else:
        extra = ["'*::program:_normal'"] if program.runs else ["'*:file:_files'"]
        lines.append('\t_arguments -s %s\\\n\t\t%s' % ('-A "-*" ' if program.runs else '',
                                                     ' \\\n\t\t'.join(options + extra)))
    return '\n'.join(lines + ['}', ''])


def zsh(programs):
    names = ' '.join(program.name for program in programs)
    lines = ['#compdef ' + names, '# SPDX-License-Identifier: BSD-3-Clause',
             '# made by config/completion.py', '', '_softhca_daemons() {', '\tlocal -a names',
             '\tnames=(${(f)"$(%s)"})' % SOCKETS, '\t_describe daemon names', '}', '']
    lines += [zsh_function(program) for program in programs]
    lines += ['case $service in']
    lines += ['%s) _%s "$@" ;;' % (program.name, program.name.replace('-', '_')) for program in programs]
    return '\n'.join(lines + ['esac', ''])


# ---- fish ----

def fish_option(program, option, condition):
    words = ['complete', '-c', program.name]
    if condition:
        words += ['-n', quoted(condition)]
    if '=' in option.name: # fish has no options with a fixed value
        return ' '.join(words + ['-a', quoted(option.name), '-d', quoted(option.text)])
    words += ['-l', option.name[2:]]
    if option.letter:
        words += ['-s', option.letter]
    if option.kind == 'choice':
        words += ['-x', '-a', quoted(' '.join(option.choices))]
    elif option.kind == 'daemon':
        words += ['-x', '-a', quoted('(%s)' % SOCKETS)]
    elif option.kind == 'host':
        words += ['-x', '-a', quoted('(__fish_print_hostnames)')]
    elif option.kind == 'folder':
        words += ['-x', '-a', quoted('(__fish_complete_directories)')]
    elif option.kind:
        words += ['-r' if option.kind == 'file' else '-x']
    return ' '.join(words + (['-d', quoted(option.text)] if option.text else []))


def fish(program):
    lines = ['# SPDX-License-Identifier: BSD-3-Clause', '# made by config/completion.py']
    for name, text, options, free in program.commands:
        lines.append('complete -c %s -f -n __fish_use_subcommand -a %s -d %s' % (
            program.name, name, quoted(text)))
        condition = '__fish_seen_subcommand_from ' + name
        lines += [fish_option(program, option, condition) for option in options]
        plain = [word for word in free if word != '@file']
        if plain:
            lines.append('complete -c %s -f -n %s -a %s' % (program.name, quoted(condition),
                                                            quoted(' '.join(plain))))
    lines += [fish_option(program, option, '') for option in program.options]
    if program.runs:
        lines.append("complete -c %s -xa '(__fish_complete_subcommand)'" % program.name)
    return '\n'.join(lines + [''])


def main():
    folder = sys.argv[1]
    programs = [Program(*word.split('=', 1)) for word in sys.argv[2:]]
    files = {'softhca': bash(programs), '_softhca': zsh(programs)}
    files.update((program.name + '.fish', fish(program)) for program in programs)
    for name, text in files.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)


main()
