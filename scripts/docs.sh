#!/usr/bin/env bash
# Builds README.md and docs/ as a site that a browser opens from the disk, with search:
#   scripts/docs.sh [FOLDER]        (default: build/site)
# Broken links and anchors are errors. The first call installs mkdocs-material in a
# virtual environment of its own; others use no network.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(mkdocs==1.6.1 mkdocs-material==9.8.1 pymdown-extensions==13.1 Markdown==3.11.3
  Pygments==2.21.0)
case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  -*) fail "unknown argument '$1': scripts/docs.sh [FOLDER]" ;;
esac
folder=$(realpath -m "${1:-build/site}")
may_replace "$folder" search
cache="${XDG_CACHE_HOME:-$HOME/.cache}/abtrain"
venv="$cache/docs-$(printf '%s\n' "${packages[@]}" | sha256sum | head -c 12)"

# Under another name first, so that a folder which exists is complete.
if [[ ! -d $venv ]]; then
  say "pip install ${packages[*]}"
  mkdir -p "$cache"
  rm -rf "$venv.part"
  python3 -m venv "$venv.part"
  "$venv.part/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
  mv "$venv.part" "$venv"
fi

mkdir -p build/pages
for part in README.md CONTRIBUTING.md CHANGELOG.md LICENSE docs slurm notebooks bench configs packaging; do
  ln -sfn "$root/$part" "build/pages/$part"
done
NO_MKDOCS_2_WARNING=1 "$venv/bin/python" -m mkdocs build --quiet --strict --site-dir "$folder"
say "open $folder/index.html"
