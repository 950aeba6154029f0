// Command testdb runs a command with a Postgres server of its own in
// TEST_DATABASE_URL, so that all packages of one `go test` share it:
//
//	go run ./internal/testdb/cmd/testdb -- go test ./...
//
// The server ends with the command, whose exit status becomes its own. Without
// a command it prints the URL and keeps the server until it is interrupted;
// with TESTDB_KEEP set it does so too after a command that failed, so that one
// can look at what the failed tests left. With -docker nothing but a container
// will do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/replywake/replywake/internal/testdb"
)

func main() {
	docker := flag.Bool("docker", false, "take the server from Docker and nowhere else")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: testdb [-docker] [-- command argument...]")
		flag.PrintDefaults()
	}
	flag.Parse()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	open, required := fromAnywhere, os.Getenv("CI") != "" || flag.NArg() == 0
	if *docker {
		open, required = testdb.OpenDocker, true
	}
	os.Exit(run(signals, opener{open, required}, flag.Args()))
}

// opener finds a server. Where it is not required, tests that miss it skip.
type opener struct {
	open     func(context.Context) (*testdb.Source, error)
	required bool
}

func fromAnywhere(ctx context.Context) (*testdb.Source, error) { return testdb.Open(ctx, logf) }

func run(signals <-chan os.Signal, from opener, command []string) int {
	source, status := from.source(signals)
	if status != 0 {
		return status
	}
	if source != nil {
		defer source.Close()
		logf("Postgres from %s", source.From)
		if len(command) == 0 {
			keep(signals, source)
			return 0
		}
	}
	status = runCommand(signals, command, source)
	if status != 0 && source != nil && os.Getenv("TESTDB_KEEP") != "" {
		keep(signals, source)
	}
	return status
}

// source returns no source and status 0 where one is missing but not required.
func (o opener) source(signals <-chan os.Signal) (*testdb.Source, int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var source *testdb.Source
	opened := make(chan error, 1)
	go func() {
		var err error
		source, err = o.open(ctx)
		opened <- err
	}()
	select {
	case s := <-signals:
		cancel()
		if <-opened == nil {
			source.Close()
		}
		return nil, signalStatus(s)
	case err := <-opened:
		if err == nil {
			return source, 0
		}
		logf("NO POSTGRES: %v", err)
		if o.required {
			return nil, 1
		}
		logf("tests that need it will be SKIPPED")
		return nil, 0
	}
}

func runCommand(signals <-chan os.Signal, command []string, source *testdb.Source) int {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the caller's own command, ended by the caller's signals
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if source != nil {
		cmd.Env = append(cmd.Env, "TEST_DATABASE_URL="+source.URL)
	}
	if err := cmd.Start(); err != nil {
		logf("%v", err)
		return 127
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			return exitStatus(err)
		}
	}
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		logf("%v", err)
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalStatus(status.Signal())
	}
	return exit.ExitCode()
}

// signalStatus is the shell's convention for a command a signal ended.
func signalStatus(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}

func keep(signals <-chan os.Signal, source *testdb.Source) {
	fmt.Printf("export TEST_DATABASE_URL='%s'\n", source.URL)
	logf("the server runs until it is interrupted (Ctrl-C)")
	<-signals
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "testdb: "+format+"\n", args...)
}
