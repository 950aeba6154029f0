package resume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// bells wake the loops. A ring while a bell is ringing is one ring.
type bells struct{ work, send, match chan struct{} }

func newBells() bells {
	bell := func() chan struct{} { return make(chan struct{}, 1) }
	return bells{work: bell(), send: bell(), match: bell()}
}

func (b bells) ring() {
	for _, bell := range []chan struct{}{b.work, b.send, b.match} {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// Wake is a hint that there may be work: call it after committing a Start or a
// Signal, and give it to a dedupe.Inbox as AfterCommit. It never blocks. The
// truth is in the tables; without a hint they are looked at every Config.Poll.
func (e *Engine) Wake() {
	e.bells.ring()
	if !e.db.SQLite && !e.cfg.Pooler {
		e.notice.ask(e.hint)
	}
}

// Run works until ctx ends: it matches mail, runs steps, sends and keeps
// deadlines. Then it takes no more work, lets what is under way finish for
// Config.Drain, stops the rest and gives all leases back, so that another
// process goes on at once. A send that is cut off may have left: whoever is
// next asks for its outcome, with the same bytes and key. Run returns nil
// after a clean stop. Errors of the database or the provider are waited out; a
// name that another stream's engine has is [ErrStream].
func (e *Engine) Run(ctx context.Context) error {
	if err := e.take(ctx); errors.Is(err, ErrStream) {
		return err
	}
	hard, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // outlives ctx by Drain
	defer stop(nil)
	defer e.observe()()
	var busy sync.WaitGroup

	work := pool[workflowRow]{size: e.cfg.Workers, claim: e.claim, run: e.work, back: e.runBack}
	send := pool[sendRow]{size: e.cfg.Senders, claim: e.claimSends, run: e.trySend, back: e.unclaimSend}
	match := pool[mailRow]{size: matchers, claim: e.claimMail, run: e.tryMatch, back: e.mailBack}
	busy.Go(func() { e.loop(ctx, "work", e.bells.work, e.st.WorkflowIsDue, work.turn(ctx, hard, &busy)) })
	busy.Go(func() { e.loop(ctx, "send", e.bells.send, e.st.SendIsDue, send.turn(ctx, hard, &busy)) })
	busy.Go(func() { e.loop(ctx, "match", e.bells.match, e.st.MailIsDue, match.turn(ctx, hard, &busy)) })
	busy.Go(func() { e.tidy(ctx) })
	busy.Go(func() { e.listen(ctx) })

	beating, rest := context.WithCancel(hard)
	var heart sync.WaitGroup
	heart.Go(func() { e.heartbeat(beating) })

	<-ctx.Done()
	e.drain(&busy, stop)
	rest()
	heart.Wait()
	return nil
}

// loop calls fn at once, then whenever the bell rings or Poll has passed;
// again at once while fn says there is more. isDue is asked first on SQLite,
// where even an empty claim would take the one write lock.
func (e *Engine) loop(ctx context.Context, name string, bell <-chan struct{}, isDue string, fn func() (more bool, err error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-bell:
		case <-timer.C:
		}
		for ctx.Err() == nil {
			more, err := e.look(ctx, isDue)
			if err == nil && more {
				more, err = fn()
			}
			if err != nil && ctx.Err() == nil {
				e.log.WarnContext(ctx, "the database does not answer as it should", "loop", name, "error", err)
			}
			if err != nil || !more {
				break
			}
		}
		timer.Reset(e.cfg.Poll)
	}
}

// look says whether a claim is worth its lock.
func (e *Engine) look(ctx context.Context, isDue string) (bool, error) {
	if !e.db.SQLite {
		return true, nil
	}
	l := &ledger{e: e, tx: e.db.Read()}
	n, err := l.count(ctx, isDue, e.cfg.Name)
	return n > 0, err
}

// pool runs claimed rows, size at once, each in a goroutine of its own: a slow
// one delays no other.
type pool[T any] struct {
	size  int
	claim func(ctx context.Context, n int) ([]*T, error)
	run   func(ctx context.Context, row *T)
	back  func(ctx context.Context, row *T) // what was claimed as the engine stopped
}

// turn returns what one turn of a loop does: claim as much as there is room
// for, and start it. The runs live on hard, which outlives ctx.
func (p pool[T]) turn(ctx, hard context.Context, busy *sync.WaitGroup) func() (more bool, err error) {
	slots := make(chan struct{}, p.size)
	return func() (bool, error) {
		free := take(ctx, slots)
		if free == 0 {
			return false, nil
		}
		rows, err := p.claim(hard, free) // cut off, nobody would know what was claimed
		for range free - len(rows) {
			<-slots
		}
		run := p.run
		if ctx.Err() != nil {
			run = p.back
		}
		for _, row := range rows {
			busy.Go(func() {
				defer func() { <-slots }()
				run(hard, row)
			})
		}
		return len(rows) == free, err
	}
}

// take waits for a free slot, or there is no use in claiming, and takes all
// that are free; 0 once ctx has ended.
func take(ctx context.Context, slots chan struct{}) (free int) {
	select {
	case slots <- struct{}{}:
		free = 1
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case slots <- struct{}{}:
			free++
		default:
			return free
		}
	}
}

// drain waits for what is under way, and stops it once Drain has passed.
func (e *Engine) drain(busy *sync.WaitGroup, stop context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		busy.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(e.cfg.Drain):
	}
	stop(ErrStopped)
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		e.log.Warn("a step ignores its context; its lease runs out by itself")
	}
}

// heartbeat extends the leases of the runs this process holds.
func (e *Engine) heartbeat(ctx context.Context) {
	tick := time.NewTicker(max(e.cfg.Lease/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			beat, cancel := context.WithTimeoutCause(ctx, e.cfg.Lease/2, errors.New("resume: the heartbeat took too long"))
			if err := e.beat(beat); err != nil && ctx.Err() == nil {
				e.log.WarnContext(ctx, "heartbeat failed", "error", err)
			}
			cancel()
		}
	}
}
