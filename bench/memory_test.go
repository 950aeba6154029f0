package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

// TestServiceMemory reports the resident memory of examples/resume after it
// has swept a million events, most of them other inboxes'. It runs only when
// asked for: MEMORY=1 go test -run TestServiceMemory -v .
func TestServiceMemory(t *testing.T) {
	if os.Getenv("MEMORY") == "" {
		t.Skip("set MEMORY=1 to measure")
	}
	const n = 1_000_000
	bin := filepath.Join(t.TempDir(), "resume")
	build := exec.Command("go", "build", "-o", bin, "./examples/resume")
	build.Dir = ".." // its own module
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	srv, _ := provider(t, n)
	defer srv.Close()
	url := testdb.Database(t)
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(os.Environ(), "EFA_BASE_URL="+srv.URL(), "EFA_PROJECT_ID="+srv.Project(), "EFA_API_KEY="+srv.Key(),
		"AGENT_INBOX_IDS=ibx_main", "EFA_INBOX_ADDRESS=agent@agents.example", "DATABASE_URL="+url, "SWEEP_START=beginning",
		"LISTEN_ADDR="+freeAddr(t), "ADMIN_ADDR="+freeAddr(t))
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()

	began := time.Now()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer pool.Close()
	require.Eventually(t, func() bool { return cursorOf(pool) >= n }, 10*time.Minute, 100*time.Millisecond)
	t.Logf("swept %d events in %s", n, time.Since(began).Round(time.Second))
	for _, field := range []string{"VmRSS", "VmHWM"} {
		t.Logf("%s %d MiB", field, memory(t, cmd.Process.Pid, field)/1024)
	}
}

func cursorOf(pool *pgxpool.Pool) (cursor int64) {
	_ = pool.QueryRow(context.Background(), "select coalesce(max(cursor), 0) from replywake.streams").Scan(&cursor)
	return cursor
}

// memory reads a field of the process's status, in KiB.
func memory(t *testing.T, pid int, field string) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return n
		}
	}
	t.Fatalf("no %s", field)
	return 0
}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
