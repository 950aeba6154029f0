#!/bin/sh
# What the official image's entrypoint does, as far as tests ask for it:
# POSTGRES_PASSWORD, POSTGRES_USER, POSTGRES_DB; the first run makes the
# cluster; the server becomes this process, as user postgres.
set -eu

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chown -R postgres:postgres "$PGDATA" /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?the first run needs POSTGRES_PASSWORD}"
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}
  (umask 077 && printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password)
  initdb -D "$PGDATA" -U "$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  if [ "$database" != postgres ]; then
    echo "CREATE DATABASE \"$database\"" | postgres --single -D "$PGDATA" postgres
  fi
fi

exec "$@" -c 'listen_addresses=*'
