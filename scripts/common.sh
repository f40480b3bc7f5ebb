# Sourced by the other scripts: where the tree is, how packages are installed, which Python the tests use.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${TEST_VENV:-$root/.venv}

say() { printf '\n== %s\n' "$*"; }
fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "packages are missing and there is neither root nor sudo: $*"; fi
}

# need_packages NAME...: installs those distribution packages that are not there.
need_packages() {
  local missing=() name
  command -v dpkg-query >/dev/null || return 0   # not Debian or Ubuntu: cmake says what it does not find
  for name in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return 0
  say "installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# unpack_package NAME FOLDER: its files, without installing it, for a program whose package starts a service.
unpack_package() {
  local name=$1 folder=$2 place
  [ ! -d "$folder" ] && command -v dpkg-deb >/dev/null || return 0
  place=$(mktemp -d)
  (cd "$place" && { apt-get download -q "$name" || { as_root apt-get update -q && apt-get download -q "$name"; }; } &&
    dpkg-deb -x "$name"_*.deb files && mkdir -p "$(dirname "$folder")" && mv files "$folder") ||
    fail "the package $name could not be unpacked"
  rm -rf "$place"
}
