package testdb

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// Image is what Docker is asked for; TEST_POSTGRES_IMAGE, as repository:tag,
// asks for another.
const Image = "postgres:15-alpine"

const (
	envImage     = "TEST_POSTGRES_IMAGE"
	postgresPort = "5432/tcp"

	pingWait = 2 * time.Second
	pullWait = 3 * time.Minute

	// The owner of a container holds this advisory lock in its server.
	ownerLock = "7308604759847530854"
)

var errNoEngine = errors.New("no Docker engine answers")

// The container's first process becomes the image's entrypoint. It ends by
// itself if within a minute nobody has come to own it.
const containerScript = `
(sleep 60; [ -e /tmp/owned ] || kill -INT 1) &
exec docker-entrypoint.sh postgres "$@"
`

// Started inside the container once the owner holds the lock: the server gives
// the lock on when the owner's connection ends, however the owner ended, and
// with the server the container goes.
const ownerScript = `
touch /tmp/owned
psql -qX -U postgres -d postgres -c "SELECT pg_advisory_lock(` + ownerLock + `)"
kill -INT 1
`

// OpenDocker starts a server in a container. The container is gone when the
// source is closed, or soon after this process has ended in any other way.
func OpenDocker(ctx context.Context) (*Source, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoEngine, err)
	}
	ping, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	if err := pool.Client.PingWithContext(ping); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoEngine, err)
	}

	image := cmp.Or(os.Getenv(envImage), Image)
	repository, tag, err := splitImage(image)
	if err != nil {
		return nil, err
	}
	if err := pull(ctx, pool, repository, tag); err != nil {
		return nil, err
	}
	password := rand.Text()
	resource, err := pool.RunWithOptions(containerOptions(pool, repository, tag, password), func(host *docker.HostConfig) {
		host.AutoRemove = true
		host.PublishAllPorts = false
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", image, err)
	}
	source := &Source{From: "Docker, " + image, URL: containerURL(pool, resource, password)}
	owner, err := own(ctx, pool, resource, source.URL)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", image, err), pool.Purge(resource))
	}
	source.close = func() {
		_ = pool.Purge(resource)
		_ = owner.Close(context.WithoutCancel(ctx))
	}
	return source, nil
}

func containerOptions(pool *dockertest.Pool, repository, tag, password string) *dockertest.RunOptions {
	published := docker.PortBinding{HostIP: "127.0.0.1"}
	if engineHost(pool) != "127.0.0.1" {
		published.HostIP = "0.0.0.0"
	}
	return &dockertest.RunOptions{
		Repository:   repository,
		Tag:          tag,
		Env:          []string{"POSTGRES_PASSWORD=" + password, "POSTGRES_USER=postgres", "POSTGRES_DB=postgres"},
		Entrypoint:   []string{"sh", "-c", containerScript, "testdb"},
		Cmd:          settings(ServerConfig{}),
		ExposedPorts: []string{postgresPort},
		PortBindings: map[docker.Port][]docker.PortBinding{postgresPort: {published}},
		Labels:       map[string]string{"com.github.replywake.testdb": "true"},
	}
}

func splitImage(image string) (repository, tag string, err error) {
	colon := strings.LastIndex(image, ":")
	if colon <= strings.LastIndex(image, "/") || colon == len(image)-1 {
		return "", "", fmt.Errorf("image %q is not repository:tag", image)
	}
	return image[:colon], image[colon+1:], nil
}

// pull does what dockertest would do, but not for ever.
func pull(ctx context.Context, pool *dockertest.Pool, repository, tag string) error {
	if _, err := pool.Client.InspectImage(repository + ":" + tag); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	err := pool.Client.PullImage(docker.PullImageOptions{Context: ctx, Repository: repository, Tag: tag}, docker.AuthConfiguration{})
	if err != nil {
		return fmt.Errorf("pull %s:%s: %w", repository, tag, err)
	}
	return nil
}

// engineHost is where published ports are found.
func engineHost(pool *dockertest.Pool) string {
	u, err := url.Parse(pool.Client.Endpoint())
	if err != nil || u.Scheme == "unix" || u.Hostname() == "" || u.Hostname() == "localhost" {
		return "127.0.0.1"
	}
	return u.Hostname()
}

func containerURL(pool *dockertest.Pool, resource *dockertest.Resource, password string) string {
	return serverURL(net.JoinHostPort(engineHost(pool), resource.GetPort(postgresPort)), password)
}

// own waits until the server takes connections, and ties the container's life
// to the connection it returns.
func own(ctx context.Context, pool *dockertest.Pool, resource *dockertest.Resource, server string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, errors.New("the container did not take connections in time"))
	defer cancel()
	conn, err := dial(ctx, server)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock("+ownerLock+")"); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	exec, err := pool.Client.CreateExec(docker.CreateExecOptions{
		Context:   ctx,
		Container: resource.Container.ID,
		Cmd:       []string{"sh", "-c", ownerScript},
	})
	if err == nil {
		err = pool.Client.StartExec(exec.ID, docker.StartExecOptions{Context: ctx, Detach: true})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tie the container to this process: %w", err), conn.Close(ctx))
	}
	return conn, nil
}

// dial tries until the server is there: from outside a container nothing tells
// when that is.
func dial(ctx context.Context, server string) (*pgx.Conn, error) {
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.Connect(ctx, server)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-retry.C:
		}
	}
}
