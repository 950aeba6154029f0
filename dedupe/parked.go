package dedupe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// ParkedEvent is an event on which the handler fails, without its content.
type ParkedEvent struct {
	ID    string
	Inbox string

	// Error is what the handler said last, 500 bytes at most. It may quote mail,
	// and goes with the content.
	Error       client.Untrusted
	Attempts    int
	ParkedAt    time.Time
	FirstFailed time.Time // since [Inbox.Retry], if a person called it
	Due         time.Time // the next attempt
	FailedAt    time.Time // given up: a person decides; zero while it is tried

	ContentGone bool // it cannot be tried any more
}

// Parked lists the events that are parked or failed, the oldest first: at most
// limit (0 is 100) behind the event ID after ("" from the beginning).
func (in *Inbox) Parked(ctx context.Context, after string, limit int) ([]ParkedEvent, error) {
	var list []ParkedEvent
	err := in.db.Read().Query(ctx, in.st.List, []any{in.name(), after, cmp.Or(limit, 100)}, func(scan sqldb.Scan) error {
		var p ParkedEvent
		var text string
		err := scan(&p.ID, &p.Inbox, &text, &p.Attempts, &p.ParkedAt, &p.FirstFailed, &p.Due, &p.FailedAt, &p.ContentGone)
		p.Error = client.NewUntrusted(text)
		list = append(list, p)
		return err
	})
	return list, wrap("list parked events", err)
}

// Retry makes a parked or failed event due now, with its attempts and its time
// counted from the beginning; its content is kept no longer. [Inbox.Run] of any
// process then tries it; the answer of Retry is not the handler's.
// [ErrNotParked], [ErrContentGone].
func (in *Inbox) Retry(ctx context.Context, eventID string) error {
	n, err := in.exec(ctx, "retry", in.st.Revive, in.name(), eventID)
	if err != nil || n > 0 {
		return err
	}
	return in.whyNot(ctx, eventID)
}

// whyNot tells why an event cannot be revived.
func (in *Inbox) whyNot(ctx context.Context, eventID string) error {
	var gone bool
	err := sqldb.One(ctx, in.db.Read(), in.st.IsGone, []any{in.name(), eventID}, &gone)
	switch {
	case errors.Is(err, sqldb.ErrNoRows):
		return ErrNotParked
	case err != nil:
		return wrap("retry", err)
	case gone:
		return ErrContentGone
	default:
		return ErrNotParked // discarded, or handled between the two statements
	}
}

// Discard ends an event without the handler: its content and its error are
// dropped, its ID stays known, and who decided so, and why, is kept for
// Config.RetainUnswept. The first decision counts; discarding again is no error.
// [ErrNotParked].
func (in *Inbox) Discard(ctx context.Context, eventID, by, reason string) error {
	n, err := in.exec(ctx, "discard", in.st.Discard, in.name(), eventID, []byte{}, cut(by), cut(reason))
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotParked
	}
	in.log.LogAttrs(ctx, slog.LevelInfo, "event discarded", slog.String("event", eventID), slog.String("by", by))
	return nil
}

const retryBatch = 100

// retryDue tries the parked events that are due. One that cannot be tried now
// holds up no other, unless the store is away.
func (in *Inbox) retryDue(ctx context.Context) error {
	var due []string
	err := in.db.Read().Query(ctx, in.st.Due, []any{in.name(), retryBatch}, func(scan sqldb.Scan) error {
		var id string
		err := scan(&id)
		due = append(due, id)
		return err
	})
	for _, id := range due {
		if sqldb.IsUnavailable(err) {
			break
		}
		err = errors.Join(err, in.retry(ctx, id))
	}
	return wrap("retry parked events", err)
}

// retry tries one parked event: the handler's work and the end of its parking
// are one commit.
func (in *Inbox) retry(ctx context.Context, id string) (err error) {
	p := &part{door: again, events: []events.Event{{ID: id}}}
	attempts, found, err := in.attempt(ctx, p)
	if fail, ok := errors.AsType[*failure](err); ok {
		return in.failedAgain(ctx, id, attempts, fail)
	}
	if err == nil && found {
		in.tel.settled(ctx, p, outcomes{id: fresh})
		in.cfg.AfterCommit()
	}
	return err
}

func (in *Inbox) attempt(ctx context.Context, p *part) (attempts int, found bool, err error) {
	ctx, done := in.tel.commit(ctx, p)
	defer func() { done(err) }()
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.CommitTimeout, errSlow)
	defer cancel()
	id, handled := p.events[0].ID, false
	err = in.db.Tx(ctx, func(tx sqldb.Tx) error {
		handled, found = false, false
		if !in.db.SQLite {
			if _, err := tx.Exec(ctx, in.st.Wait, in.lockTimeout()); err != nil {
				return err
			}
		}
		var stored []byte
		var sequence int64
		err := sqldb.One(ctx, tx, in.st.Parked, []any{in.name(), id}, &stored, &attempts, &sequence)
		if errors.Is(err, sqldb.ErrNoRows) {
			return nil // another process has it, or a person has decided
		}
		if err != nil {
			return err
		}
		found = true
		ev, err := decode(stored)
		if err != nil {
			return &failure{err: err}
		}
		ev.Sequence = max(ev.Sequence, events.Cursor(sequence))
		if handled, err = in.handle(ctx, tx, []events.Event{ev}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, in.st.Unpark, in.name(), id)
		return err
	})
	if handled {
		err = rejected(err)
	}
	return attempts, found, err
}

// failedAgain counts an attempt, unless another process has counted it.
func (in *Inbox) failedAgain(ctx context.Context, id string, attempts int, fail *failure) error {
	var gaveUp bool
	args := []any{in.name(), id, attempts, fail.text(), in.pause(attempts + 1), in.cfg.MaxAttempts, -in.cfg.GiveUpAfter}
	err := in.inTx(ctx, "count an attempt", func(tx sqldb.Tx) error {
		return sqldb.One(ctx, tx, in.st.Failed, args, &gaveUp)
	})
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if gaveUp {
		in.logFailure(ctx, slog.LevelError, "event failed: retry or discard it", id, attempts+1, fail)
	} else {
		in.logFailure(ctx, slog.LevelWarn, "parked event failed again", id, attempts+1, fail)
	}
	return nil
}
