package testdb

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ServerConfig configures a [Server]. Its zero value is right for most tests.
type ServerConfig struct {
	// Fsync keeps fsync on. Off by default: what a test does to a server is
	// kill its processes, and that loses nothing the kernel has been given.
	Fsync bool

	// MaxConnections defaults to 200.
	MaxConnections int

	// Settings are further server settings, name to value.
	Settings map[string]string
}

// Server is a PostgreSQL server of local binaries with data of its own, on a
// loopback port that stays the same over restarts. It ends with this process,
// however that ends, and leaves nothing behind.
//
// Its methods may be called from any goroutine, one at a time.
type Server struct {
	cfg      ServerConfig
	bin      string // folder of the binaries
	dir      string // everything it writes
	port     int
	password string
	owner    *syscall.Credential // nil: whoever we are
	janitor  *janitor

	mu      sync.Mutex
	running *postmaster
}

const startWait = time.Minute

// NewServer starts a server that belongs to tb alone: stop it, crash it, start
// it again. Without server binaries tb is skipped, or fails where CI is set.
func NewServer(tb TB, cfg ServerConfig) *Server {
	tb.Helper()
	server, err := StartServer(tb.Context(), cfg)
	if errors.Is(err, errNoBinaries) {
		missing(tb, err)
	}
	if err != nil {
		tb.Fatalf("testdb: %v", err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("testdb: %v", err)
		}
	})
	return server
}

// StartServer is [NewServer] for programs. The caller must Close it.
func StartServer(ctx context.Context, cfg ServerConfig) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	owner, err := serverUser()
	if err != nil {
		return nil, err
	}
	dir := newDir(owner)
	janitor, err := startJanitor(dir, owner)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, bin: bin, dir: dir, owner: owner, janitor: janitor, password: rand.Text()}
	err = s.initialise(ctx)
	if err == nil {
		err = s.startOnFreePort(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// URL of the server's superuser in the database "postgres".
func (s *Server) URL() string {
	return serverURL(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), s.password)
}

func serverURL(host, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     host,
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Start starts a stopped server and returns when it takes connections, after
// recovery if it had crashed.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start(ctx)
}

// Stop shuts the server down in order: open transactions are rolled back,
// connections closed. Stopping a stopped server does nothing.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Crash ends the server at once, as a crash does: the next start recovers.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

// Restart is a crash and a start.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Crash(); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Close stops the server and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.end(syscall.SIGQUIT), s.janitor.dismiss())
}

func (s *Server) initialise(ctx context.Context) error {
	passwords := filepath.Join(s.dir, "password")
	if err := os.WriteFile(passwords, []byte(s.password+"\n"), 0o600); err != nil {
		return err
	}
	if s.owner != nil {
		if err := os.Chown(passwords, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return err
		}
	}
	cmd := s.command("initdb", "--pgdata", s.data(), "--username=postgres", "--auth=password", "--pwfile="+passwords,
		"--encoding=UTF8", "--locale=C", "--no-sync")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("initdb: %w: %s", cmp.Or(context.Cause(ctx), err), strings.TrimSpace(out.String()))
	}
	return nil
}

// startOnFreePort tries a few ports: one that was free may be taken by the
// time the server asks for it.
func (s *Server) startOnFreePort(ctx context.Context) error {
	var err error
	for range 5 {
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = s.Start(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

// freePort stays below the range from which outgoing connections get theirs,
// so that nobody takes the port while the server is down, and no client that
// tries to connect meanwhile connects to itself.
func freePort(ctx context.Context) (int, error) {
	var err error
	for range 50 {
		port := 15000 + mathrand.IntN(17000)
		var l net.Listener
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command runs a server program as the server's user, in the janitor's group.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Setpgid: true, Pgid: s.janitor.pid()}
	cmd.ExtraFiles = []*os.File{s.janitor.held}
	return cmd
}

// settings are the same for a server of binaries and one in a container.
func settings(cfg ServerConfig) []string {
	all := []string{
		"-cmax_connections=" + strconv.Itoa(cmp.Or(cfg.MaxConnections, 200)),
		"-cTimeZone=" + timeZone,
		"-cmax_wal_size=4GB",
	}
	if !cfg.Fsync {
		// synchronous_commit stays on: without it a crash loses commits.
		all = append(all, "-cfsync=off", "-cfull_page_writes=off")
	}
	for name, value := range cfg.Settings {
		all = append(all, "-c"+name+"="+value)
	}
	return all
}

func (s *Server) start(ctx context.Context) error {
	if s.running != nil {
		return errors.New("the server runs already")
	}
	args := append(settings(s.cfg),
		"-D", s.data(), "-cport="+strconv.Itoa(s.port), "-clisten_addresses=127.0.0.1", "-cunix_socket_directories=")
	p, err := startPostmaster(s.command("postgres", args...))
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, errors.New("postgres did not take connections in time"))
	defer cancel()
	select {
	case <-p.ready:
		s.running = p
		return nil
	case <-p.exited:
		return fmt.Errorf("postgres ended: %w: %s", p.err, p.log())
	case <-ctx.Done():
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.exited
		return fmt.Errorf("start postgres: %w: %s", context.Cause(ctx), p.log())
	}
}

func (s *Server) end(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running
	if p == nil {
		return nil
	}
	s.running = nil
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgres: %w", err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(startWait):
		_ = p.cmd.Process.Kill()
		return fmt.Errorf("postgres did not stop in %v: %s", startWait, p.log())
	}
}

// postmaster is one run of the server.
type postmaster struct {
	cmd    *exec.Cmd
	ready  chan struct{} // closed when it takes connections
	exited chan struct{} // closed when it is gone; err is set then
	err    error

	mu   sync.Mutex
	tail []string
}

func startPostmaster(cmd *exec.Cmd) (*postmaster, error) {
	p := &postmaster{cmd: cmd, ready: make(chan struct{}), exited: make(chan struct{})}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		p.follow(reader)
		_ = reader.Close()
	}()
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
		<-drained
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
	}()
	return p, nil
}

// follow reads the log: the server says itself when it takes connections.
func (p *postmaster) follow(log io.Reader) {
	lines := bufio.NewScanner(log)
	var ready bool
	for lines.Scan() {
		p.mu.Lock()
		p.tail = append(p.tail, lines.Text())
		p.tail = p.tail[max(0, len(p.tail)-30):]
		p.mu.Unlock()
		if !ready && strings.Contains(lines.Text(), "database system is ready to accept connections") {
			ready = true
			close(p.ready)
		}
	}
	_, _ = io.Copy(io.Discard, log) // a line too long for the scanner must not stop the server
}

func (p *postmaster) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.tail, "\n")
}
