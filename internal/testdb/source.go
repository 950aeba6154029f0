package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

const envURL = "TEST_DATABASE_URL"

// Source is a Postgres server and where it comes from.
type Source struct {
	URL  string // of a database of a superuser
	From string // for people: "TEST_DATABASE_URL", "Docker, postgres:15-alpine", …

	close func()
}

// Close stops what Open started.
func (s *Source) Close() {
	if s.close != nil {
		s.close()
	}
}

// Open finds or starts a server: TEST_DATABASE_URL, else Docker, else binaries
// of this machine. A source that is there but fails is logged and the next one
// tried. What it starts ends with this process at the latest.
func Open(ctx context.Context, logf func(format string, args ...any)) (*Source, error) {
	if given := os.Getenv(envURL); given != "" {
		if !strings.HasPrefix(given, "postgres://") && !strings.HasPrefix(given, "postgresql://") {
			return nil, fmt.Errorf("%s is not a postgres:// URL", envURL)
		}
		return &Source{URL: given, From: envURL}, nil
	}

	fromDocker, dockerErr := OpenDocker(ctx)
	if dockerErr == nil {
		return fromDocker, nil
	}
	if !errors.Is(dockerErr, errNoEngine) {
		logf("Docker did not give a server, trying local binaries: %v", dockerErr)
	}

	server, localErr := StartServer(ctx, ServerConfig{})
	if localErr == nil {
		return &Source{URL: server.URL(), From: "local binaries, " + server.bin, close: func() { _ = server.Close() }}, nil
	}
	return nil, fmt.Errorf("set %s, start Docker, or install PostgreSQL's server: %w", envURL, errors.Join(dockerErr, localErr))
}
