package resumetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/resume"
)

// Call is what a step is to be called with.
type Call struct {
	Kind         string
	Counterparty string // default supplier@example.com
	State        any    // the saved state

	// Inputs are what arrived: replies ([Reply]), signals and bounces together,
	// or one rejection or send error. With any of them the workflow has sent one
	// mail before, the question. Of a reply the Body and the Message's From,
	// Subject and At count; IDs are made up where they are empty. The question
	// left an hour before the earliest At; a reply without one came a minute
	// after the one before it.
	Inputs []resume.Input

	Tables string // SQL that makes the tables which the step's [resume.Run.InSQL] writes to

	// Timeouts are the deadlines that passed since the question left, an hour
	// each. Without Inputs the step is called for the last of them.
	Timeouts int64
}

func (c Call) asked() bool    { return len(c.Inputs) > 0 || c.Timeouts > 0 }
func (c Call) timedOut() bool { return len(c.Inputs) == 0 && c.Timeouts > 0 }

// Reply is a reply with a text, from the counterparty.
func Reply(text string) resume.Input {
	return resume.Input{Kind: resume.InputReply, Body: client.Body{Text: client.NewUntrusted(text), Available: true}}
}

// Decision is what a step decided.
type Decision struct {
	Sent   *client.Outgoing // nil for none
	Wait   time.Duration    // to the second; 0 is without a deadline
	Done   bool             // at once, or once the mail is accepted
	Review string           // why a person must look
	State  []byte           // as it is saved now
	Err    error            // what the step returned, or why its result was refused
}

// Run calls a step once and returns what it decided. It uses a real engine on
// a database of its own, so what it says of the result is what an engine would
// do with it: mail that cannot be sent is an Err. It fails the test if the
// engine would not give the step all Inputs; no Policy judges them.
//
// The database is SQLite: a step can join writes with [resume.Run.InSQL], while
// [resume.Run.InPostgres] makes an Err.
func Run(tb testing.TB, step resume.Step, c Call) Decision {
	tb.Helper()
	if c.Counterparty == "" {
		c.Counterparty = "supplier@example.com"
	}
	d, err := newOneCall(tb, step, c).run()
	if err != nil {
		tb.Fatalf("resumetest: run a step: %v", err)
	}
	return d
}

// oneCall is a workflow's life up to one step call.
type oneCall struct {
	given  Call
	step   resume.Step
	mail   *script
	store  *liteStore
	engine *resume.SQLiteEngine
	err    error

	called bool
	got    []resume.Input
	failed error // what the step returned
}

func newOneCall(tb testing.TB, step resume.Step, c Call) *oneCall {
	tb.Helper()
	o := &oneCall{given: c, step: step, mail: newScript(c)}
	if o.mail.mail, o.err = efa.New(efa.Config{Project: "script", Key: "efa_test_script"}); o.err != nil {
		return o
	}
	if o.store, o.err = newLite(tb, c.Tables); o.err != nil {
		return o
	}
	cfg := resume.Config{Inboxes: map[string][]string{scriptInbox: {"agent@replywake.invalid"}}, Attempts: 1}
	o.engine, o.err = resume.NewSQLite(o.store.db, o.mail, o.watched, cfg)
	return o
}

func (o *oneCall) watched(ctx context.Context, run *resume.Run) (next resume.Next, err error) {
	o.called, o.got, o.mail.sealed = true, run.Inputs, nil
	if o.mail.missing(o.got) != nil {
		return resume.Done(), nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		o.failed = err
	}()
	return o.step(ctx, run)
}

func (o *oneCall) run() (Decision, error) {
	ctx := context.Background()
	if o.err != nil {
		return Decision{}, o.err
	}
	s := resume.Start{ID: "w", Kind: o.given.Kind, Inbox: scriptInbox, Counterparty: o.given.Counterparty, State: o.given.State}
	if o.given.asked() {
		s.First = resume.Send(client.Outgoing{To: []string{o.given.Counterparty}, Subject: "question", Text: "?"})
	}
	if o.given.timedOut() {
		s.First = s.First.Wait(time.Hour)
	}
	if _, err := o.engine.Start(ctx, nil, s); err != nil {
		return Decision{}, err
	}
	if o.given.asked() {
		if err := o.ask(ctx); err != nil {
			return Decision{}, err
		}
		if err := o.arrive(ctx); err != nil {
			return Decision{}, err
		}
	}
	if _, err := o.engine.Once(ctx, resume.JobWork); err != nil {
		return Decision{}, err
	}
	if err := o.mail.missing(o.got); err != nil {
		return Decision{}, err
	}
	if !o.called {
		return Decision{}, errors.New("the engine did not call the step")
	}
	return o.decision(ctx)
}

// ask sends the question, and lets the time since then pass.
func (o *oneCall) ask(ctx context.Context) error {
	if _, err := o.engine.Once(ctx, resume.JobSend); err != nil {
		return err
	}
	before := o.given.Timeouts
	if o.given.timedOut() {
		before-- // the engine counts this one
	}
	if _, err := o.store.db.ExecContext(ctx, "update replywake_workflows set timeouts = ?1", before); err != nil {
		return err
	}
	return o.store.shift(ctx, 0, time.Since(o.mail.asked))
}

// arrive brings the inputs.
func (o *oneCall) arrive(ctx context.Context) error {
	for _, in := range o.given.Inputs {
		if in.Kind == resume.InputSignal {
			if err := o.engine.Signal(ctx, nil, "w", in.Signal, in.Data); err != nil {
				return err
			}
		}
	}
	tx, err := o.store.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := o.engine.Route(ctx, tx, o.mail.events()); err != nil {
		return err
	}
	return tx.Commit()
}

// decision reads from the workflow what was decided.
func (o *oneCall) decision(ctx context.Context) (Decision, error) {
	w, err := o.engine.Workflow(ctx, "w")
	d := Decision{Sent: o.mail.sealed, State: w.State, Err: o.failed}
	if err != nil || d.Err != nil {
		return Decision{State: w.State, Err: d.Err}, err
	}
	var finish bool
	var wait, deadline, updated int64
	err = o.store.db.QueryRowContext(ctx, "select finish, wait, coalesce(deadline, updated_at), updated_at from replywake_workflows").
		Scan(&finish, &wait, &deadline, &updated)
	d.Done = finish || w.Status == resume.StatusDone
	d.Wait = (time.Duration(wait+deadline-updated) * time.Microsecond).Round(time.Second)
	if w.Status == resume.StatusNeedsReview {
		d.Review = w.Error
		if w.Attempts > 0 { // with one attempt, a result that is refused is before a person at once
			d = Decision{State: w.State, Err: fmt.Errorf("resumetest: %s", w.Error)}
		}
	}
	return d, err
}
