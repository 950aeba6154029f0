package testdb

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
)

var errNoBinaries = errors.New("no PostgreSQL server binaries (PGBIN, /usr/lib/postgresql/*/bin, PATH)")

// findBinaries returns the folder of postgres and initdb, of the newest
// version where several are installed side by side.
func findBinaries() (string, error) {
	if bin := os.Getenv("PGBIN"); bin != "" {
		if !hasServer(bin) {
			return "", fmt.Errorf("PGBIN=%s has no postgres and initdb: %w", bin, errNoBinaries)
		}
		return bin, nil
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"} {
		matches, _ := filepath.Glob(pattern) // fails on a bad pattern only
		found = append(found, matches...)
	}
	slices.SortFunc(found, func(a, b string) int { return versionOf(b) - versionOf(a) })
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, filepath.Dir(path))
	}
	if i := slices.IndexFunc(found, hasServer); i >= 0 {
		return found[i], nil
	}
	return "", errNoBinaries
}

func hasServer(bin string) bool {
	_, err := exec.LookPath(filepath.Join(bin, "postgres"))
	_, initErr := exec.LookPath(filepath.Join(bin, "initdb"))
	return err == nil && initErr == nil
}

var digits = regexp.MustCompile(`\d+`)

func versionOf(bin string) int {
	version, _ := strconv.Atoi(digits.FindString(bin)) // 0: an unversioned folder comes last
	return version
}

// serverUser is nil for an ordinary user. PostgreSQL refuses to run as root, so
// root runs it as somebody else.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("find a user to run PostgreSQL as: %w", err)
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// newDir names a folder for a server's files, where its user can make it.
func newDir(owner *syscall.Credential) string {
	parent := os.TempDir()
	if owner != nil && !openToAll(parent) {
		parent = "/tmp"
	}
	return filepath.Join(parent, "replywake-testdb-"+rand.Text())
}

// openToAll reports whether anybody can reach dir and write to it.
func openToAll(dir string) bool {
	need := fs.FileMode(0o003)
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&need != need {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir, need = filepath.Dir(dir), 0o001
	}
}
