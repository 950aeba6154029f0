#!/usr/bin/env bash
# Makes sure that the engine has the image the tests ask for: there already, or
# pulled, or, where nothing can be pulled (TESTDB_PULL=no does not try), a
# stand-in under the same name made of this machine's own PostgreSQL, the
# libraries it needs and entrypoint.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=${TEST_POSTGRES_IMAGE:-$(sed -n 's/^const Image = "\(.*\)"/\1/p' "$here/../docker.go")}

if docker image inspect "$image" >/dev/null 2>&1; then
  echo "image $image: there already"
  exit 0
fi
if [ "${TESTDB_PULL:-yes}" != no ] && timeout 180 docker pull --quiet "$image"; then
  echo "image $image: pulled"
  exit 0
fi

bin=${PGBIN:-$(find /usr/lib/postgresql/*/bin -maxdepth 0 | sort -V | tail -n 1)}
version=$(basename "$(dirname "$bin")")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

# Debian's layout: programs in /usr/bin, with /bin and /lib as links into /usr.
mkdir -p "$root"/{dev,etc,proc,sys,tmp,usr/bin,usr/lib,usr/lib64,usr/sbin,var/run,var/lib/postgresql/data}
chmod 1777 "$root/tmp"
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done

with_parents() { tar -C / -cf - "${@#/}" | tar -C "$root" -xf -; }
with_parents "/usr/lib/postgresql/$version/bin" "/usr/share/postgresql/$version" /usr/share/zoneinfo
tar -C / -cf - --exclude='llvmjit*' --exclude=bitcode --exclude=pgxs "usr/lib/postgresql/$version/lib" | tar -C "$root" -xf -
for name in sh cat chmod chown env id mkdir rm setpriv sleep touch; do
  cp -L "$(type -P "$name")" "$root/usr/bin/$name"
done

# Every library that any of these programs and modules is linked with.
find "$root/usr" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
  grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r library; do
    target="$root/usr/${library#/usr/}"
    if [[ $library == "$root"* ]]; then continue; fi
    mkdir -p "$(dirname "$target")"
    cp -L "$library" "$target"
  done

printf 'root:x:0:0::/root:/bin/sh\npostgres:x:70:70::/var/lib/postgresql:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\npostgres:x:70:\n' >"$root/etc/group"
install -m 755 "$here/entrypoint.sh" "$root/usr/bin/docker-entrypoint.sh"

tar -C "$root" -cf - . | docker import \
  --message "stand-in of local PostgreSQL $version files" \
  --change 'ENTRYPOINT ["docker-entrypoint.sh"]' --change 'CMD ["postgres"]' \
  --change 'EXPOSE 5432' --change 'VOLUME /var/lib/postgresql/data' \
  --change 'ENV PGDATA=/var/lib/postgresql/data' \
  --change "ENV PATH=/usr/lib/postgresql/$version/bin:/usr/bin:/usr/sbin" \
  --change 'LABEL com.github.replywake.testdb=stand-in' - "$image"
echo "image $image: not pulled; a stand-in made of local PostgreSQL $version files"
