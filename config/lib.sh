# SPDX-License-Identifier: BSD-3-Clause
# Shell functions shared by config/setup, tests/run and benchmarks/run. Sourced, never run.
#
# The caller sets `root` (the checkout) before sourcing.
shopt -s extglob

# Steps go to stdout, errors to stderr.
say() { printf '== %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# run_logged LOG COMMAND...: runs quietly; shows the end of the log if the command fails.
run_logged() {
	local log=$1 rc=0
	shift
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	if [ $rc -ne 0 ]; then
		printf -- '---- %s: exit status %d, end of %s\n' "$*" $rc "$log"
		tail -n 100 "$log"
		printf -- '----\n'
	fi
	return $rc
}

# Options are remembered in the build directory: the same ones need no second configuration, others
# with the same names are changed in place (libibverbs-dev may come later), other names or a checkout
# that was moved start it afresh.
# Prints nothing on success. Environment (CC) is taken from the caller.
build_configure() {
	local dir=$1 log=$1.log want have= again=
	shift
	want="$root ${CC:-} $*"
	[ ! -f "$dir/build.ninja" ] || have=$(cat "$dir/.options" 2>/dev/null) || have=
	if [ "$have" = "$want" ]; then
		run_logged "$log" ninja -C "$dir" build.ninja # lists of tests may be older than their files
		return
	fi
	if [ "${have//=+([! ])/}" = "${want//=+([! ])/}" ]; then
		again=--reconfigure
	else
		rm -rf "$dir"
	fi
	mkdir -p "$(dirname "$dir")"
	run_logged "$log" meson setup $again "$dir" "$root" "$@" || return 1
	printf '%s\n' "$want" >"$dir/.options"
}

# Time of a step on a CPU of 2023, without ccache, in tenths of a second
STEP_TENTHS=2

# say_steps DIR TARGET...: how much there is to compile, where it is worth a line.
say_steps() {
	local dir=$1 steps
	shift
	steps=$(ninja -C "$dir" -n "$@" 2>/dev/null | sed -n '$s/^\[[0-9]*\/\([0-9]*\)\].*/\1/p')
	[ "${steps:-0}" -lt $((100 * $(nproc) / STEP_TENTHS)) ] ||
		say "build $dir: $steps steps, about $((steps * STEP_TENTHS / 10 / $(nproc))) s on $(nproc) CPUs, less with ccache"
}

# build DIR MESON-OPTION... [-- TARGET...]: configures and compiles.
build() {
	local dir=$1 start=$SECONDS options=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	say "build $dir (${options[*]:-default options})"
	build_configure "$dir" ${options[@]+"${options[@]}"} || return 1
	say_steps "$dir" "$@"
	# ninja goes on after a failure, so that one run shows every broken file
	run_logged "$dir.log" ninja -C "$dir" -k 0 "$@" || return 1
	say "build $dir done, $((SECONDS - start)) s"
}

release_options() {
	local verbs=disabled
	! pkg-config --exists 'libibverbs >= 1.14' || verbs=enabled
	echo "--prefix=/usr --buildtype=release -Dverbs=$verbs"
}

# build_release FOLDER [TARGET...]: the build in FOLDER/release that config/build, benchmarks/run
# and tests/run share. FOLDER/release.warned is there as long as a compiler has warned of its
# sources.
build_release() {
	local dir=$1/release
	shift
	# shellcheck disable=SC2046
	build "$dir" $(release_options) -- "$@" || return 1
	! grep -q ': warning: .*\[-W' "$dir.log" || cp "$dir.log" "$dir.warned"
}

# build_targets DIR TARGET...: for scripts that need a few programs. A build directory that is there is
# taken as it is; otherwise the machine is set up and a release build made.
build_targets() {
	local dir=$1
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		"$root/config/setup" --tests || return 1
		# shellcheck disable=SC2046
		build_configure "$dir" $(release_options) || return 1
	fi
	say "build $dir: $*"
	run_logged "$dir.log" ninja -C "$dir" "$@"
}

# One run per build directory at a time; the lock goes away with the process.
lock_build() {
	mkdir -p "$1" || die "cannot write to $1; choose another place with --build DIR"
	exec 9>"$1/.lock"
	flock -n 9 || die "another run is using $1; wait for it or choose another place with --build DIR"
}
