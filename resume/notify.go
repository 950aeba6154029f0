package resume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Other processes on the same Postgres are told of work by NOTIFY. It is a
// hint: outside every transaction that matters, and at most one each
// noticeEvery, since Postgres queues commits that notify.

const noticeEvery = 20 * time.Millisecond

// notice sends the hints that were asked for, from a goroutine that lives only
// while there are any: a process that merely starts workflows sends them too.
type notice struct {
	mu    sync.Mutex
	asked bool
	busy  bool
}

func (n *notice) ask(send func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = true
	if n.busy {
		return
	}
	n.busy = true
	go func() {
		for n.take() {
			send()
			<-time.After(noticeEvery)
		}
	}()
}

func (n *notice) take() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = n.asked
	n.asked = false
	return n.busy
}

func (e *Engine) channel() string {
	sum := sha256.Sum256([]byte(e.cfg.Schema + "\x1f" + e.cfg.Name))
	return "replywake_" + hex.EncodeToString(sum[:8])
}

// hint tells other processes that there may be work.
func (e *Engine) hint() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Second, errors.New("resume: the hint took too long"))
	defer cancel()
	if _, err := e.db.Pool().Exec(ctx, "select pg_notify($1, $2)", e.channel(), e.owner); err != nil {
		e.log.DebugContext(ctx, "no hint could be sent", "error", err)
	}
}

// listen rings the bells for other processes' hints. It holds one connection
// outside the pool. After every connect it rings once: what happened while
// nobody listened is found by looking.
func (e *Engine) listen(ctx context.Context) {
	if e.db.SQLite || e.cfg.Pooler {
		return
	}
	for ctx.Err() == nil {
		err := e.listenOnce(ctx)
		if ctx.Err() == nil {
			e.log.DebugContext(ctx, "listening again", "error", err)
			pause(ctx, time.Second)
		}
	}
}

func (e *Engine) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, e.db.Pool().Config().ConnConfig.Copy())
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "listen "+e.channel()); err != nil {
		return err
	}
	e.bells.ring()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload != e.owner {
			e.bells.ring()
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
