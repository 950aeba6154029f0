package testdb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

//nolint:paralleltest // the environment is the subject
func TestOpenTakesTheEnvironmentFirst(t *testing.T) {
	t.Setenv("TEST_DATABASE_URL", "postgres://db.example/test")
	source, err := testdb.Open(t.Context(), t.Logf)
	require.NoError(t, err)
	require.Equal(t, "postgres://db.example/test", source.URL)
	source.Close() // stops nothing

	t.Setenv("TEST_DATABASE_URL", "host=db.example")
	_, err = testdb.Open(t.Context(), t.Logf)
	require.ErrorContains(t, err, "not a postgres:// URL")
}

// An engine that answers but has no image, and can get none.
//
//nolint:paralleltest // the environment is the subject
func TestOpenGoesOnWhereDockerFails(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/_ping") {
			http.Error(w, `{"message":"no such image"}`, http.StatusNotFound)
		}
	}))
	t.Cleanup(engine.Close)
	source, logged := openWithEngine(t, engine)
	require.Contains(t, source.From, "local binaries")
	require.Contains(t, logged, "pull postgres:15-alpine")
	require.Equal(t, "1", ask(t, source.URL, "SELECT 1"))
}

//nolint:paralleltest // the environment is the subject
func TestOpenDoesNotWaitForADockerThatHangs(t *testing.T) {
	release := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(engine.Close)
	t.Cleanup(func() { close(release) })

	begun := time.Now()
	source, logged := openWithEngine(t, engine)
	require.Contains(t, source.From, "local binaries")
	require.Empty(t, logged, "no engine is nothing to tell")
	require.Less(t, time.Since(begun), 30*time.Second)
}

func openWithEngine(t *testing.T, engine *httptest.Server) (*testdb.Source, string) {
	t.Helper()
	t.Setenv("TEST_DATABASE_URL", "")
	t.Setenv("TEST_POSTGRES_IMAGE", "")
	t.Setenv("DOCKER_HOST", "tcp://"+engine.Listener.Addr().String())
	t.Setenv("DOCKER_CERT_PATH", "")
	var logged strings.Builder
	source, err := testdb.Open(t.Context(), func(format string, args ...any) { fmt.Fprintf(&logged, format+"\n", args...) })
	if err != nil && strings.Contains(err.Error(), "no PostgreSQL server binaries") {
		t.Skip("there is nothing to go on to")
	}
	require.NoError(t, err)
	t.Cleanup(source.Close)
	return source, logged.String()
}
