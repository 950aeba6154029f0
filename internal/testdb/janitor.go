package testdb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// janitorScript is a process of its own and so cleans up even after this one
// was killed. It waits for two pipes, never for a time: stdin ends when the
// owner lets go or dies; descriptor 3 ends when the last server process, which
// all inherit it, is gone. Server programs run in the janitor's process group.
const janitorScript = `
trap '' HUP INT QUIT TERM
cat >/dev/null
kill -QUIT 0
cat <&3 >/dev/null
rm -rf "$1"
`

type janitor struct {
	cmd  *exec.Cmd
	life *os.File // held by this process alone
	held *os.File // held by this process and every server process
}

func startJanitor(dir string, owner *syscall.Credential) (*janitor, error) {
	lifeEnd, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	heldEnd, held, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, lifeEnd.Close(), life.Close())
	}
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "testdb-janitor", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Stdin = lifeEnd
	cmd.ExtraFiles = []*os.File{heldEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	err = cmd.Start()
	_, _ = lifeEnd.Close(), heldEnd.Close()
	if err != nil {
		_, _ = life.Close(), held.Close()
		return nil, fmt.Errorf("start the server's janitor: %w", err)
	}
	return &janitor{cmd: cmd, life: life, held: held}, nil
}

func (j *janitor) pid() int { return j.cmd.Process.Pid }

// dismiss lets go of both pipes and waits until everything is cleaned up.
func (j *janitor) dismiss() error {
	_, _ = j.life.Close(), j.held.Close()
	if err := j.cmd.Wait(); err != nil {
		return fmt.Errorf("clean up after the server: %w", err)
	}
	return nil
}
