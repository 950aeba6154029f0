package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// demo plays the provider and its trouble. The agent's process is a call of
// receive: it begins with the file alone, and nothing of it outlives its end.
type demo struct {
	out      io.Writer
	provider *efatest.Server
	path     string
	db       *sql.DB            // for looking, beside the agent's own
	inbox    *dedupe.Inbox      // likewise
	sent     []efatest.Received // what must be handled, once each
}

// demoWithin ends a demonstration in which something never comes.
const demoWithin = time.Minute

// demonstrate returns an error if a message was missed or handled twice.
func demonstrate(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	dir, err := os.MkdirTemp("", "replywake-sweeper-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d := &demo{out: out, path: filepath.Join(dir, "agent.db")}
	if d.provider, err = efatest.Start(efatest.Config{Manual: true}); err != nil { //nolint:contextcheck // it lives until Close
		return err
	}
	defer d.provider.Close()
	if d.db, err = open(ctx, d.path); err != nil {
		return err
	}
	defer func() { _ = d.db.Close() }()
	stream := events.Stream{Name: "efa:" + d.provider.Project()}
	if d.inbox, err = dedupe.NewSQLite(d.db, dedupe.Config{Stream: stream}, note); err != nil { //nolint:contextcheck // it asks nobody
		return err
	}

	_, _ = fmt.Fprintf(out, "An agent without a public address: one API key, one SQLite file, a cursor.\n\n")
	for _, scene := range []func(context.Context) error{d.attach, d.crash, d.late, d.expire} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return d.verdict(ctx)
}

// attach: what is there before the agent first runs is history.
func (d *demo) attach(ctx context.Context) error {
	d.provider.Inbound(efatest.Mail{Text: "from last year"})
	agent := d.start(ctx, note)
	err := agent.until(ctx, func() (bool, error) {
		status, err := d.inbox.Status(ctx)
		return status.Known, err
	})
	d.say("attached", "1 older message at the provider is history")
	return errors.Join(err, agent.stop())
}

var errCrash = errors.New("the process died")

// crash: the process dies in its handler, with notes written and nothing
// committed.
func (d *demo) crash(ctx context.Context) error {
	for range 3 {
		d.inbound(efatest.Mail{})
	}
	died := make(chan struct{})
	dying, die := context.WithCancelCause(ctx)
	agent := d.start(dying, func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
		if err := note(ctx, tx, fresh); err != nil {
			return err
		}
		die(errCrash)
		close(died)
		return context.Cause(ctx)
	})
	select {
	case <-died:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), agent.stop())
	}
	if err := agent.stop(); err != nil {
		return err
	}
	n, err := d.notes(ctx)
	d.say("crash", "3 messages came; the process died behind the last note, before the commit: %d notes", n)
	if err != nil || n != 0 {
		return errors.Join(err, errors.New("a crash before the commit must leave nothing"))
	}
	agent = d.start(ctx, note)
	err = d.handled(ctx, agent)
	d.say("restart", "the same 3 come again: %d notes", len(d.sent))
	return errors.Join(err, agent.stop())
}

// late: a sequence becomes visible after a higher one, as it does when the
// provider's transactions overlap. The cursor is past it by then.
func (d *demo) late(ctx context.Context) error {
	agent := d.start(ctx, note)
	late := d.inbound(efatest.Mail{Late: time.Second}) // by the provider's clock, which stands still
	higher := d.inbound(efatest.Mail{})
	err := agent.until(ctx, func() (bool, error) {
		status, err := d.inbox.Status(ctx)
		return status.Cursor >= events.Cursor(higher.Sequence), err
	})
	n, err2 := d.notes(ctx)
	d.say("late", "the cursor stands at %d while %d cannot be seen yet: %d notes", higher.Sequence, late.Sequence, n)
	d.provider.Advance(time.Second) //nolint:contextcheck // it takes no context
	err = errors.Join(err, err2, d.handled(ctx, agent))
	d.say("", "now it can, and the sweep has looked back: %d notes", len(d.sent))
	return errors.Join(err, agent.stop())
}

// expire: the agent was away so long that the provider forgot some events.
func (d *demo) expire(ctx context.Context) error {
	gone := d.provider.Inbound(efatest.Mail{})
	d.inbound(efatest.Mail{})
	d.provider.Expire(gone.Sequence)
	agent := d.start(ctx, note)
	err := d.handled(ctx, agent)
	status, err2 := d.inbox.Status(ctx)
	if err := errors.Join(err, err2, agent.stop()); err != nil {
		return err
	}
	lost := status.Lost
	d.say("expired", "the process was away too long: %d is gone, and reported; %d is the oldest that remains: %d notes",
		lost.Cursor+1, lost.Oldest, len(d.sent))
	if lost.At.IsZero() {
		return errors.New("the loss was not reported")
	}
	return nil
}

func (d *demo) verdict(ctx context.Context) error {
	missing := 0
	for _, in := range d.sent {
		var n int
		if err := d.db.QueryRowContext(ctx, "select count(*) from notes where event = ?", in.EventID).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			missing++
		}
	}
	n, err := d.notes(ctx)
	doubled := n - len(d.sent) + missing
	_, _ = fmt.Fprintf(d.out, "\n%d messages to handle, %d notes: %d missing, %d twice\n", len(d.sent), n, missing, doubled)
	if err != nil || missing != 0 || doubled != 0 {
		return errors.Join(err, errors.New("not exactly once"))
	}
	return nil
}

// agent is a process of the agent.
type agent struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

// start starts the agent on its file. It sweeps more often than a real one.
func (d *demo) start(ctx context.Context, handle handler) *agent {
	ctx, cancel := context.WithCancel(ctx)
	a := &agent{cancel: cancel, done: make(chan struct{})}
	account := efa.Config{BaseURL: d.provider.URL(), Project: d.provider.Project(), Key: d.provider.Key()}
	go func() {
		defer close(a.done)
		db, err := open(ctx, d.path)
		if err != nil {
			a.err = err
			return
		}
		err = receive(ctx, account, db, events.SweeperConfig{Start: events.FromNow, Every: 50 * time.Millisecond}, handle)
		a.err = errors.Join(err, db.Close())
	}()
	return a
}

func (a *agent) stop() error {
	a.cancel()
	<-a.done
	return a.err
}

// until waits until ok, as long as the agent runs.
func (a *agent) until(ctx context.Context, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-a.done:
			return errors.New("the agent ended by itself")
		case <-ctx.Done():
			return fmt.Errorf("something did not come: %w", ctx.Err())
		}
	}
}

// inbound is a message that must be handled.
func (d *demo) inbound(m efatest.Mail) efatest.Received {
	in := d.provider.Inbound(m)
	d.sent = append(d.sent, in)
	return in
}

// handled waits until there is a note of everything, and then for another
// sweep, which reads it all again.
func (d *demo) handled(ctx context.Context, a *agent) error {
	err := a.until(ctx, func() (bool, error) {
		n, err := d.notes(ctx)
		return n >= len(d.sent), err
	})
	sweeps := d.provider.Count(efatest.OpEvents)
	return errors.Join(err, a.until(ctx, func() (bool, error) { return d.provider.Count(efatest.OpEvents) > sweeps+1, nil }))
}

func (d *demo) notes(ctx context.Context) (n int, err error) {
	err = d.db.QueryRowContext(ctx, "select count(*) from notes").Scan(&n)
	return n, err
}

func (d *demo) say(what, format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
}
