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

# apt_mirror: the one in apt's configuration.
apt_mirror() {
  local mirror
  mirror=$(apt-cache policy libc6 | grep -o '[a-z]*://[^ ]*' | head -n 1)
  [ -n "$mirror" ] || fail "apt's configuration names no mirror"
  echo "$mirror"
}

# apt_beside FOLDER [OPTION...] < LINES: makes apt_options, with which apt knows the lines (of a sources.list) and nothing of what
# is installed, and keeps its files in FOLDER.
apt_beside() {
  local folder=$1
  shift
  mkdir -p "$folder/lists/partial" "$folder/cache" "$folder/fetched"
  : > "$folder/status"
  cat > "$folder/sources.list"
  apt_options="$* -o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$folder/lists
    -o Dir::State::Status=$folder/status -o Dir::Cache=$folder/cache"
  apt-get $apt_options update -q
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
