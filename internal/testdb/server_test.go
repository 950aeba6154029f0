package testdb_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

// envVictim makes this test binary a process that starts a server and waits to
// be killed: see TestNoServerOutlivesAKilledProcess.
const envVictim = "TESTDB_TEST_VICTIM"

func TestMain(m *testing.M) {
	if kind := os.Getenv(envVictim); kind != "" {
		beVictim(kind)
	}
	os.Exit(m.Run())
}

func TestServerKeepsCommitsOverACrash(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t, testdb.ServerConfig{Settings: map[string]string{"application_name": "crashing"}})
	at := server.URL()
	conn := connect(t, at)
	require.Equal(t, "crashing", ask(t, at, "SHOW application_name"))
	require.Equal(t, "200", ask(t, at, "SHOW max_connections"))
	_, err := conn.Exec(t.Context(), "CREATE TABLE things AS SELECT 42 AS id")
	require.NoError(t, err)

	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, at, server.URL())
	require.Error(t, conn.Ping(t.Context()), "a connection does not survive")
	require.Equal(t, "42", ask(t, at, "SELECT id FROM things"))
}

func TestServerGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t, testdb.ServerConfig{Fsync: true})
	require.Equal(t, "on", ask(t, server.URL(), "SHOW fsync"))
	require.ErrorContains(t, server.Start(t.Context()), "runs already")

	require.NoError(t, server.Stop())
	require.NoError(t, server.Stop(), "a stopped server stays stopped")
	_, err := pgx.Connect(t.Context(), server.URL())
	require.Error(t, err)

	require.NoError(t, server.Start(t.Context()))
	require.Equal(t, "1", ask(t, server.URL(), "SELECT 1"))
}

func TestServerSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := testdb.StartServer(t.Context(), testdb.ServerConfig{Settings: map[string]string{"wal_level": "nonsense"}})
	require.ErrorContains(t, err, `invalid value for parameter "wal_level"`)
}

func TestServerStartIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrNoProgress)
	_, err := testdb.StartServer(ctx, testdb.ServerConfig{})
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func TestNoServerOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	testdb.NewServer(t, testdb.ServerConfig{}) // skips where there is no server to be had

	t.Run("while it starts", func(t *testing.T) {
		t.Parallel()
		v := startVictim(t, "server")
		require.Eventually(t, func() bool {
			begun, _ := filepath.Glob(filepath.Join(v.temp, "*", "data"))
			return len(begun) > 0
		}, time.Minute, time.Millisecond, "initdb never began")
		v.kill(t)
		v.leavesNothing(t)
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		v := startVictim(t, "server")
		v.await(t, "running")
		v.kill(t)
		v.leavesNothing(t)
	})
}

// victim is this test binary as a process of its own.
type victim struct {
	cmd  *exec.Cmd
	said *bufio.Scanner
	temp string   // its TMPDIR
	gone *os.File // ends when the last descendant is gone: all inherit the other end
}

func startVictim(t *testing.T, kind string) *victim {
	t.Helper()
	temp := openTempDir(t)
	gone, held, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = gone.Close() })
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this very program
	cmd.Env = append(os.Environ(), envVictim+"="+kind, "TMPDIR="+temp)
	cmd.ExtraFiles = []*os.File{nil, held} // descriptor 4: 3 is used by the server's own pipe
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, held.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &victim{cmd: cmd, said: bufio.NewScanner(said), temp: temp, gone: gone}
}

func (v *victim) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, v.cmd.Process.Kill())
}

func (v *victim) leavesNothing(t *testing.T) {
	t.Helper()
	require.NoError(t, v.gone.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.ReadAll(v.gone)
	require.NoError(t, err, "some process of the server still runs")
	left, err := os.ReadDir(v.temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// await returns what follows word on the line that begins with it.
func (v *victim) await(t *testing.T, word string) string {
	t.Helper()
	for v.said.Scan() {
		if rest, ok := strings.CutPrefix(v.said.Text(), word); ok {
			return strings.TrimSpace(rest)
		}
	}
	require.Fail(t, "the process ended before it said "+word, v.said.Text())
	return ""
}

func beVictim(kind string) {
	fmt.Println("starting")
	var at string
	switch kind {
	case "server":
		server, err := testdb.StartServer(context.Background(), testdb.ServerConfig{})
		exitOn(err)
		at = server.URL()
	case "docker":
		source, err := testdb.OpenDocker(context.Background())
		exitOn(err)
		at = source.URL
	}
	fmt.Println("running", at)
	select {}
}

func exitOn(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// openTempDir is a folder that the server's user may use, unlike [testing.T.TempDir].
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "replywake-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // another user must be able to write here
	return dir
}
