#!/bin/sh
# Runs ./dev commands in a fresh, minimal Debian, to show that they install all they need:
#
#   tools/test_in_chroot.sh bookworm|trixie ['demo' 'test --long' ...]
#
# Each further argument is one ./dev command; without any, `test` is run. What is tested is a clone
# of the committed HEAD. Needs root and debootstrap. The environment can hold:
#
#   POSENC_CHROOT_CACHE  a folder for the base systems (${TMPDIR:-/var/tmp}/posenc-chroot)
#   POSENC_MIRROR        the Debian mirror (debootstrap's default)
#   POSENC_APT_CONF      a file to lay into the chroot's /etc/apt/apt.conf.d/
#   POSENC_CA_FILE       certificates to trust in there, where a proxy needs its own (for pip too)
#   POSENC_KEEP          not empty: keep the chroot and say where it is
#   http_proxy, https_proxy, no_proxy: passed on
set -eu

die() {
    echo "test_in_chroot: $*" >&2
    exit 2
}

suite=${1-}
case $suite in
bookworm | trixie) shift ;;
*) die "usage: tools/test_in_chroot.sh bookworm|trixie ['demo' 'test --long' ...]" ;;
esac
[ $# -gt 0 ] || set -- test
[ "$(id -u)" -eq 0 ] || die "this needs root, for chroot and debootstrap"
for tool in debootstrap unshare git; do
    command -v $tool >/dev/null || die "this needs $tool"
done

repo=$(cd "$(dirname "$0")/.." && pwd)
cache=${POSENC_CHROOT_CACHE:-${TMPDIR:-/var/tmp}/posenc-chroot}
mkdir -p "$cache"
# The physical path, since /proc/mounts knows no other.
cache=$(cd "$cache" && pwd -P)
base=$cache/$suite.tar
work=$(mktemp -d "$cache/run-$suite.XXXXXX")

# All mounts are made in a mount namespace of their own (unshare), so that the kernel drops them
# with its last process, even after a kill, and this shell never has them. Should there be one
# all the same, nothing is removed.
remove_work() {
    if [ -n "${POSENC_KEEP-}" ]; then
        echo "test_in_chroot: kept $work" >&2
    elif grep -qF " $work" /proc/mounts; then
        echo "test_in_chroot: $work has mounts in it and is left; please unmount them" >&2
    else
        rm -rf --one-file-system "$work"
    fi
}
child=
stop() {
    [ -z "$child" ] || kill -KILL "$child"
    sleep 1 # Until the kernel has ended all that ran in there.
    exit "$1"
}
trap remove_work EXIT
trap 'stop 130' INT
trap 'stop 143' TERM HUP

root=$work/root
mkdir "$root"
if [ ! -f "$base" ]; then
    echo "test_in_chroot: making the base system of $suite (once)" >&2
    unshare --mount debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$root" \
        ${POSENC_MIRROR:+"$POSENC_MIRROR"} >"$work/log" 2>&1 </dev/null || {
        tail -n 20 "$work/log" >&2
        die "debootstrap failed"
    }
    rm -f "$root"/var/cache/apt/archives/*.deb
    # Renamed only when whole: a broken run leaves no half base.
    tar -C "$root" --one-file-system --numeric-owner -cf "$work/base.tar" .
    mv "$work/base.tar" "$base"
else
    tar -C "$root" --numeric-owner -xpf "$base"
fi

[ -z "$(git -C "$repo" status --porcelain)" ] ||
    echo "test_in_chroot: changes that are not committed are not tested" >&2
git clone --quiet --no-hardlinks "$repo" "$root/root/posenc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ -z "${POSENC_APT_CONF-}" ] || cp "$POSENC_APT_CONF" "$root/etc/apt/apt.conf.d/99posenc"

[ -z "${POSENC_CA_FILE-}" ] || cp "$POSENC_CA_FILE" "$root/etc/ssl/certs/ca-certificates.crt"

# The device files come from debootstrap, so that nothing of the host's /dev is mounted.
# In a process namespace of its own, so that all ends with it; in the background, so that this
# shell hears signals meanwhile.
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount --pid --fork --kill-child sh -eu -c '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev/shm"
    for command; do
        echo "test_in_chroot: ./dev $command" >&2
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=true \
            ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
            ${no_proxy:+"no_proxy=$no_proxy"} \
            ${POSENC_CA_FILE:+"PIP_CERT=/etc/ssl/certs/ca-certificates.crt"} \
            chroot "$root" sh -c "cd /root/posenc && ./dev $command" </dev/null
    done' sh "$root" "$@" &
child=$!
wait $child
