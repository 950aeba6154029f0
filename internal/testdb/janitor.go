package testdb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// janitorScript is a process of its own, which makes the folder of a server
// and removes it, even after this process was killed. It waits for two pipes,
// never for a time: stdin ends when the owner lets go or dies; descriptor 3
// ends when the last server process, which all inherit it, is gone. Server
// programs run in the janitor's process group.
const janitorScript = `
trap '' HUP INT QUIT TERM
mkdir -m 700 "$1" || exit
echo ready
exec >/dev/null
cat
kill -QUIT 0
cat <&3
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
	var complaint strings.Builder
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "testdb-janitor", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Stdin = lifeEnd
	cmd.Stderr = &complaint
	cmd.ExtraFiles = []*os.File{heldEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	_, _ = lifeEnd.Close(), heldEnd.Close()
	j := &janitor{cmd: cmd, life: life, held: held}
	if err != nil {
		_, _ = life.Close(), held.Close()
		return nil, fmt.Errorf("start the server's janitor: %w", err)
	}
	if word, _ := io.ReadAll(said); len(word) == 0 {
		return nil, fmt.Errorf("make the server's folder: %w: %s", j.dismiss(), strings.TrimSpace(complaint.String()))
	}
	return j, nil
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
