package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	cryptorand "crypto/rand"
)

// service is the service as a process, which may be killed and started again.
type service struct {
	url, admin, token string
	env               []string
	log               buffer

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// newService takes its provider and its database from env.
func newService(ctx context.Context, env []string) (*service, error) {
	listen, err1 := freeAddress(ctx)
	admin, err2 := freeAddress(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	s := &service{url: "http://" + listen, admin: "http://" + admin, token: cryptorand.Text()}
	s.env = append(append(os.Environ(), env...),
		"LISTEN_ADDR="+listen,
		"ADMIN_ADDR="+admin,
		"ADMIN_TOKEN="+s.token,
		"SWEEP_START=now",
		// Shorter than a real service wants, to see everything in seconds.
		"SWEEP_EVERY=500ms",
		"LEASE=1s",
		"SEND_RETRY_AFTER=500ms",
		"MAX_SENDS_PER_HOUR=20",
	)
	return s, nil
}

// The ports that are tried begin anywhere and follow each other, so that none
// is given twice: what it was given for may be down just now.
var (
	firstPort = rand.IntN(ports)
	tried     atomic.Int64
)

const ports = 12000 // from 20000: below those that outgoing connections get

// freeAddress is an address that is still free after a kill.
func freeAddress(ctx context.Context) (string, error) {
	var err error
	for range 50 {
		port := 20000 + (firstPort+int(tried.Add(1)))%ports
		var l net.Listener
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}

// start starts the process and waits until it is ready.
func (s *service) start(ctx context.Context) error {
	if err := s.run(); err != nil {
		return err
	}
	for {
		if status, err := s.get(ctx, s.url+"/readyz"); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-s.ended():
			return errors.New("the service ended by itself")
		default:
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the service did not become ready: %w", err)
		}
	}
}

func (s *service) run() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program) //nolint:gosec,noctx // this program itself; killed by us
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &s.log, &s.log
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.done = cmd, done
	go func() {
		_ = cmd.Wait() // its end is in cmd.ProcessState
		close(done)
	}()
	return nil
}

// restart is what a supervisor does.
func (s *service) restart() {
	if err := s.run(); err != nil {
		_, _ = fmt.Fprintln(&s.log, err)
	}
}

func (s *service) process() (*exec.Cmd, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd, s.done
}

func (s *service) pid() int {
	cmd, _ := s.process()
	return cmd.Process.Pid
}

func (s *service) ended() <-chan struct{} {
	_, done := s.process()
	return done
}

// kill is kill -9: the process has no say in it. It returns when it is gone.
func (s *service) kill() {
	if cmd, done := s.process(); cmd != nil {
		_ = cmd.Process.Kill() // it may have ended
		<-done
	}
}

// stop asks the process to end, as a deployment does.
func (s *service) stop(ctx context.Context) error {
	cmd, done := s.process()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the service ended with status %d", code)
	}
	return nil
}

// lastWords is the end of what the service logged, for when something is wrong.
func (s *service) lastWords() error {
	text := s.log.String()
	return fmt.Errorf("the service's last words:\n%s", text[max(0, len(text)-4000):])
}

var local = &http.Client{Timeout: 5 * time.Second}

func (s *service) get(ctx context.Context, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := local.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// call makes an admin request until it is answered: the service may be down
// for a moment.
func (s *service) call(ctx context.Context, method, path string, body, into any) error {
	for {
		err := s.callOnce(ctx, method, path, body, into)
		if _, refused := errors.AsType[statusError](err); err == nil || refused {
			return err
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

type statusError string

func (e statusError) Error() string { return string(e) }

func (s *service) callOnce(ctx context.Context, method, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.admin+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := local.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return errors.New(resp.Status)
	case resp.StatusCode >= 300:
		return statusError(method + " " + path + ": " + resp.Status)
	case into == nil:
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// buffer is a bytes.Buffer for several writers.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
