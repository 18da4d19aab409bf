# SPDX-License-Identifier: BSD-3-Clause
# Shell functions shared by config/setup, tests/run and benchmarks/run. Sourced, never run.
#
# The caller sets `root` (the checkout) before sourcing.

# What is being done goes to stdout, what went wrong to stderr.
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

# Options are remembered in the build directory: the same ones need no second configuration, other
# ones (or a checkout that was moved) start it afresh.
# Prints nothing on success. Environment (CC) is taken from the caller.
build_configure() {
	local dir=$1 log=$1.log want
	shift
	want="$root ${CC:-} $*"
	if [ -f "$dir/build.ninja" ] && [ "$(cat "$dir/.options" 2>/dev/null)" = "$want" ]; then
		run_logged "$log" ninja -C "$dir" build.ninja # lists of tests may be older than their files
		return
	fi
	rm -rf "$dir"
	mkdir -p "$(dirname "$dir")"
	run_logged "$log" meson setup "$dir" "$root" "$@" || return 1
	printf '%s\n' "$want" >"$dir/.options"
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
	# ninja goes on after a failure, so that one run shows every broken file
	run_logged "$dir.log" ninja -C "$dir" -k 0 "$@" || return 1
	say "build $dir done, $((SECONDS - start)) s"
}

# build_targets DIR TARGET...: for scripts that need a few programs. A build directory that is there is
# taken as it is; otherwise the machine is set up and a release build made.
build_targets() {
	local dir=$1
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		"$root/config/setup" --tests || return 1
		build_configure "$dir" --buildtype=release || return 1
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
