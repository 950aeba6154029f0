#!/usr/bin/env bash
# Makes sure that tests can have a Postgres, and does nothing where they can:
# TEST_DATABASE_URL, a Docker engine, or server binaries. Else, as root on
# Debian or a relative, it installs the server's package, without the cluster
# that the package would make and start. Anywhere else the tests say what is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=${TEST_POSTGRES_IMAGE:-$(sed -n 's/^const Image = "\(.*\)"/\1/p' "$here/docker.go")}

has_docker() { # an engine that has the image, or can get it
  command -v docker >/dev/null && timeout 5 docker info >/dev/null 2>&1 || return 1
  docker image inspect "$image" >/dev/null 2>&1 || timeout 180 docker pull --quiet "$image" >&2
}
has_binaries() {
  local initdb
  for initdb in "${PGBIN:-}"/initdb /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb; do
    if [ -x "$initdb" ]; then return 0; fi
  done
  command -v initdb >/dev/null
}

if [ -n "${TEST_DATABASE_URL:-}" ] || has_binaries || has_docker; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then exit 0; fi

echo "testdb: no Postgres to test with, installing Debian's postgresql" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update >&2
apt-get install -y --no-install-recommends postgresql-common >&2
sed -i 's/^#\? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
apt-get install -y --no-install-recommends postgresql >&2
