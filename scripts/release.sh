#!/usr/bin/env bash
# Packs dist/abtrain-VERSION.tar.xz from the last commit: the repository, and in
# third_party/ the sources of the libraries that abtrain is linked with, in the versions
# of this Debian, with their licenses, and Fashion-MNIST. scripts/setup.sh --user builds
# them on a machine without root, where only the PyPI can be reached.
# Runs on Debian; needs no root, but: apt-get install dpkg-dev autoconf automake libtool
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  '') ;;
  *) fail "unknown argument '$1': scripts/release.sh takes none" ;;
esac
for tool in dpkg-source autoreconf libtoolize; do
  command -v "$tool" >/dev/null ||
    fail "$tool is missing: apt-get install dpkg-dev autoconf automake libtool"
done
# Their development packages, whose versions decide. What is only for tests stays out.
packages=(libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev
  libturbojpeg0-dev libpng-dev libwebp-dev libutf8proc-dev
  libsodium-dev)
version=$(sed -n 's/^project(abtrain VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=abtrain-$version
mkdir -p build dist
work=$(mktemp -d -p build release-XXXXXX)
work=$root/$work
trap 'rm -rf "$work"' EXIT
if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
  say "changes that are not committed are left out"
fi
git archive --prefix "$name/" HEAD | tar -x -C "$work"
# The tree has no git, from which a build would learn its revision.
git rev-parse --short=10 HEAD >"$work/$name/REVISION"

# Lists of apt's own, so that the machine's need not name sources.
mkdir -p "$work/lists/partial" "$work/sources"
cat >"$work/sources.list" <<END
deb-src http://deb.debian.org/debian bookworm main
deb-src http://deb.debian.org/debian-security bookworm-security main
END
apt_get() {
  apt-get -qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$work/lists" -o APT::Sandbox::User=root \
    -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" "$@"
}
say "sources of Debian"
apt_get update
third_party=$work/$name/third_party
mkdir "$third_party"
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016  # dpkg-query replaces these
  read -r source number < <(dpkg-query --show \
    --showformat='${source:Package} ${source:Version}\n' "$package") ||
    fail "$package is not installed; run scripts/setup.sh"
  say "$source $number"
  (cd "$work/sources" && apt_get source --download-only "$source=$number" >/dev/null)
  dpkg-source --no-check --no-copy --extract "$work/sources/${source}_${number#*:}.dsc" \
    "$third_party/$source" >/dev/null 2>&1 || fail "could not unpack $source $number"
  echo "$number" >"$third_party/$source/DEBIAN_VERSION"
  mv "$third_party/$source/debian/copyright" "$third_party/$source/DEBIAN_COPYRIGHT"
  rm -rf "$third_party/$source"/{debian,.pc}
done
rm -rf "$third_party/nlohmann-json3"/{tests,docs}  # most of its size
# This source comes without the script that configures it.
(cd "$third_party/libsodium" && autoreconf --install) >/dev/null 2>&1 ||
  fail "autoreconf of libsodium failed"
rm -rf "$third_party/libsodium/autom4te.cache"

data=/usr/share/datasets/fashion-mnist
[[ -d $data ]] || fail "there is no $data; run scripts/setup.sh"
mkdir -p "$third_party/data"
cp -r "$data" "$third_party/data/"
cp /usr/share/doc/dataset-fashion-mnist/copyright "$third_party/data/fashion-mnist/DEBIAN_COPYRIGHT"

# No compiled file belongs here.
[[ -z $(find "$third_party" -name '*.o' -o -name '*.a' -o -name '*.so') ]] ||
  fail "third_party/ holds compiled files"
tar -c --owner=0 --group=0 --numeric-owner -C "$work" "$name" | xz -T0 >"dist/$name.tar.xz"
say "dist/$name.tar.xz: $(du -m "dist/$name.tar.xz" | cut -f1) MiB"
