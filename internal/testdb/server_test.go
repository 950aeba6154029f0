package testdb_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	for name, lastWord := range map[string]string{"while it starts": "starting", "while it runs": "running"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := openTempDir(t)
			gone := killAfter(t, "server", temp, lastWord)

			require.NoError(t, gone.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err := io.ReadAll(gone)
			require.NoError(t, err, "some process of the server still runs")
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// killAfter starts a victim and kills it when it has said a word. What it
// returns ends when the last descendant of the victim is gone: all of them
// inherit the other end.
func killAfter(t *testing.T, kind, temp, word string) *os.File {
	t.Helper()
	gone, held, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = gone.Close() })
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envVictim+"="+kind, "TMPDIR="+temp)
	cmd.ExtraFiles = []*os.File{nil, held} // descriptor 4: 3 is used by the server's own pipe
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, held.Close())
	t.Cleanup(func() { _ = cmd.Wait() })

	lines := bufio.NewScanner(said)
	for lines.Scan() && lines.Text() != word {
	}
	require.Equal(t, word, lines.Text())
	require.NoError(t, cmd.Process.Kill())
	return gone
}

func beVictim(kind string) {
	fmt.Println("starting")
	var err error
	switch kind {
	case "server":
		_, err = testdb.StartServer(context.Background(), testdb.ServerConfig{})
	case "docker":
		_, err = testdb.OpenDocker(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("running")
	select {}
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
