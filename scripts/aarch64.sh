#!/usr/bin/env bash
# Builds for 64-bit Arm processors, such as those of a GH200, on Debian 12 on x86-64, and tries the
# result under qemu, CPU only:
#   scripts/aarch64.sh        into build/aarch64: abtrain, and the tests of the lower floors
# It needs root or sudo for the cross compiler, qemu, and the lists of Arm packages; a native build
# is scripts/setup.sh and cmake, as on any other machine.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($#)); then
  sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  exit 0
fi
sysroot=$cache/aarch64
site=$sysroot/site
tests=(base config ops linalg compress state comm)
# Static libraries but for the first, all found in the sysroot.
packages=(libyaml-cpp-dev libyaml-cpp0.7 libxxhash-dev zlib1g-dev zlib1g libturbojpeg0-dev
  libpng-dev libwebp-dev libutf8proc-dev libsodium-dev libgtest-dev)

# wheel PACKAGE==VERSION: unpacks the Arm wheel of a package into the site folder.
wheel() {
  local folder platforms=() glibc
  for glibc in 2_17 2_25 2_27 2_28; do
    platforms+=(--platform "manylinux_${glibc}_aarch64")
  done
  folder=$(mktemp -d)
  "$cache/torch-$default_torch/bin/python" -m pip download --quiet --disable-pip-version-check \
    --no-deps --dest "$folder" --python-version 3.11 --only-binary=:all: "${platforms[@]}" "$1"
  (cd "$site" && "$cache/torch-$default_torch/bin/python" -m zipfile --extract "$folder"/*.whl .)
  rm -r "$folder"
}

scripts/setup.sh
if [[ ! -f $sysroot/complete ]]; then
  say "cross compiler, qemu, and Arm's libraries into $sysroot"
  rm -rf "$sysroot"
  mkdir -p "$sysroot/debs" "$site"
  if [[ $(dpkg --print-foreign-architectures) != *arm64* ]]; then
    as_root dpkg --add-architecture arm64
  fi
  as_root apt-get update -qq
  as_root apt-get install -qq -y --no-install-recommends g++-aarch64-linux-gnu qemu-user-static >/dev/null
  (cd "$sysroot/debs" && apt-get -qq download "${packages[@]/%/:arm64}" nlohmann-json3-dev libcli11-dev)
  for package in "$sysroot"/debs/*.deb; do
    dpkg-deb --extract "$package" "$sysroot"
  done
  wheel "torch==$default_torch"
  # LibTorch's CPU library loads these two of the toolkit.
  for record in "$cache/torch-$default_torch"/lib/python3*/site-packages/nvidia_cuda_{runtime,cupti}-*.dist-info; do
    record=$(basename "$record" .dist-info)
    wheel "${record/-/==}"
  done
  touch "$sysroot/complete"
fi

mkdir -p build
say "configure build/aarch64"
run_logged cmake --preset cpu -B build/aarch64 --toolchain cmake/aarch64.cmake \
  -DABTRAIN_SYSROOT="$sysroot" -DABTRAIN_TORCH="$site/torch" -DABTRAIN_STATIC=ON -DABTRAIN_MPI=OFF \
  -DABTRAIN_BENCH=OFF
say "build: abtrain, tests of ${tests[*]}"
run_logged cmake --build build/aarch64 --target abtrain "${tests[@]/#/test_}"
emulated() {
  LD_LIBRARY_PATH='' qemu-aarch64-static -L /usr/aarch64-linux-gnu \
    -E LD_LIBRARY_PATH="$site/torch/lib" "$@"
}
say "$(emulated build/aarch64/abtrain doctor | grep -E '^(abtrain|CPU)' | tr -s ' ')"
for floor in "${tests[@]}"; do
  say "tests of $floor"
  emulated "build/aarch64/tests/test_$floor" --gtest_brief=1
done
