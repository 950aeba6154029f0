package testdb_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
)

// needDocker skips unless `make test-docker` says that an engine must be there.
func needDocker(t *testing.T) {
	t.Helper()
	if os.Getenv("TESTDB_DOCKER") == "" {
		t.Skip("TESTDB_DOCKER is not set: run `make test-docker`")
	}
}

func TestDockerServesThroughAPublishedPort(t *testing.T) {
	t.Parallel()
	needDocker(t)
	source, err := testdb.OpenDocker(t.Context())
	require.NoError(t, err)
	t.Logf("%s answers at %s: %s", source.From, source.URL, ask(t, source.URL, "SELECT version()"))
	require.Equal(t, "Asia/Tokyo", ask(t, source.URL, "SHOW TimeZone"))
	require.Equal(t, "200", ask(t, source.URL, "SHOW max_connections"))
	require.Equal(t, "off", ask(t, source.URL, "SHOW fsync"))

	source.Close()
	_, err = pgx.Connect(t.Context(), source.URL)
	require.Error(t, err)
}

func TestNoContainerOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	needDocker(t)
	v := startVictim(t, "docker")
	conn := connect(t, v.await(t, "running"))
	v.kill(t)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := conn.WaitForNotification(ctx)
	require.ErrorContains(t, err, "terminating connection due to administrator command")
	_, err = pgx.Connect(ctx, conn.Config().ConnString())
	require.Error(t, err)
}

func TestDockerRefusesAnImageWithoutTag(t *testing.T) {
	needDocker(t)
	t.Setenv("TEST_POSTGRES_IMAGE", "localhost:5000/postgres")
	_, err := testdb.OpenDocker(t.Context())
	require.ErrorContains(t, err, "is not repository:tag")
}
