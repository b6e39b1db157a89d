#!/usr/bin/env bash
# Installs what is missing to build abtrain on Debian 12: compilers and libraries
# from Debian, and LibTorch from its Python wheel, in a folder of its own. If
# everything is installed, it does nothing and uses no network. It may be interrupted,
# and run twice at the same time.
#   scripts/setup.sh            what building and training need
#   scripts/setup.sh --tests    also what tests need: Slurm, and the Python packages
#                               that they compare with
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch_version=2.11.0
# Draws the HTML report: its JavaScript is embedded in the program.
plotly_version=7.1.0
# Packages for tests, benchmarks and notebooks: none of them is needed to train. Those
# of the first list are installed without their dependencies: torch is installed
# already, and no model is ever downloaded.
test_packages=(torchvision==0.26.0 timm==1.0.31 pillow==13.0.0 safetensors==0.8.0)
reader_packages=(pandas==3.1.1 matplotlib==3.11.2 tensorboard==2.21.0
  nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0 jsonschema==4.26.0
  pyyaml==6.0.3 transformers==5.23.0)
with_tests=false
case ${1-} in
  '') ;;
  --tests) with_tests=true ;;
  *) fail "unknown argument '$1': scripts/setup.sh [--tests]" ;;
esac
packages=(
  build-essential cmake ninja-build ccache mold git ca-certificates
  python3 python3-venv
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev
  libturbojpeg0-dev libsodium-dev
  libopenmpi-dev openmpi-bin
  libgtest-dev libbenchmark-dev dataset-fashion-mnist
)
# Tests start a Slurm of one node, a browser for the HTML report, and zsh; where one
# is missing, its tests are skipped.
if $with_tests; then
  packages+=(slurm-wlm munge chromium-headless-shell zsh)
fi
cache="${XDG_CACHE_HOME:-$HOME/.cache}/abtrain"
venv="$cache/torch-$torch_version"
plotly="$cache/plotly-$plotly_version.min.js"
gcide="$cache/data/gcide"

installed() {
  local status
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) &&
    [[ $status == installed ]]
}

missing_packages() {
  local package
  # One query for all packages; only if that fails, ask for each one.
  if [[ $(dpkg-query --show --showformat='${db:Status-Status}\n' "${packages[@]}" \
    2>/dev/null | grep -cx installed) == "${#packages[@]}" ]]; then
    return
  fi
  for package in "${packages[@]}"; do
    installed "$package" || echo "$package"
  done
}

# Runs a command as root.
as_root() {
  if [[ $EUID == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

install_packages() {
  if [[ $EUID != 0 ]]; then
    command -v sudo >/dev/null || fail "packages are missing: $*
Run this as root, or ask an administrator to run: apt-get install $*"
  fi
  command -v apt-get >/dev/null ||
    fail "this system has no apt-get; install the equivalents of these Debian packages: $*"
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
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "torch==$torch_version" numpy
  rm "$venv.incomplete"
}

gcide_is_there() {
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

# Extracts the script alone from its Python wheel.
install_plotly() {
  local wheel
  say "plotly.js $plotly_version into $plotly"
  wheel=$(mktemp -d)
  "$venv/bin/python" -m pip download --quiet --disable-pip-version-check \
    --no-deps --dest "$wheel" "plotly==$plotly_version"
  "$venv/bin/python" - "$wheel"/plotly-*.whl "$plotly.part" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as out:
    out.write(wheel.read("plotly/package_data/plotly.min.js"))
END
  mv "$plotly.part" "$plotly"
  rm -r "$wheel"
}

# Looks at pip's record of each package, so that no Python has to start.
test_packages_are_there() {
  local package
  for package in "${test_packages[@]}" "${reader_packages[@]}"; do
    compgen -G "$venv/lib/python3*/site-packages/${package%%==*}-${package##*==}*.dist-info" \
      >/dev/null || return 1
  done
}

install_test_packages() {
  say "pip install ${test_packages[*]} ${reader_packages[*]}"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps "${test_packages[@]}"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "${reader_packages[@]}"
}

all_there() {
  [[ -z $(missing_packages) ]] && torch_is_there && [[ -s $plotly ]] && gcide_is_there &&
    { ! $with_tests || test_packages_are_there; }
}

if ! all_there; then
  mkdir -p "$cache"
  exec 9>"$venv.lock"
  if ! flock --nonblock 9; then
    say "another setup is running: waiting for it"
    flock 9
  fi
  # Check again: the other setup may have installed them.
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then
    install_packages "${missing[@]}"
  fi
  torch_is_there || install_torch
  [[ -s $plotly ]] || install_plotly
  gcide_is_there || install_gcide
  if $with_tests && ! test_packages_are_there; then
    install_test_packages
  fi
  all_there || fail "something is still missing: $(missing_packages) $venv $plotly $gcide"
fi
say "setup: everything is installed"
