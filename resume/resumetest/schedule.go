package resumetest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// schedule says which actor goes on at each decision, as letters: a is the
// first actor. Behind its end the one that went last goes on, or, where it
// cannot, the first that can.
type schedule string

// letters name the actors.
const letters = "abcdefghijklmnopqrstuvwxyz"

// String is short: a5b2 for aaaaabb.
func (s schedule) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		b.WriteByte(s[i])
		if j-i > 1 {
			b.WriteString(strconv.Itoa(j - i))
		}
		i = j
	}
	return b.String()
}

func parseSchedule(text string) (schedule, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		letter := text[i]
		if !strings.Contains(letters, string(letter)) {
			return "", fmt.Errorf("schedule %q: want letters and numbers, like a5b2", text)
		}
		j := i + 1
		for j < len(text) && text[j] >= '0' && text[j] <= '9' {
			j++
		}
		n := 1
		if j > i+1 {
			n, _ = strconv.Atoi(text[i+1 : j]) // digits only
		}
		b.WriteString(strings.Repeat(string(letter), min(n, 1<<16)))
		i = j
	}
	return schedule(b.String()), nil
}

// state is where an actor is.
type state int

const (
	parkedAt  state = iota // at a boundary, until it is let go
	running                // let go
	blockedOn              // at a lock that another actor holds
	finished
)

// player is an actor in a goroutine of its own, which stops at every boundary.
type player struct {
	actor  Actor
	world  *World
	state  state
	events chan string   // the boundary it stopped at; closed at its end
	goOn   chan struct{} // lets it go
	inTx   bool          // SQLite: it holds the write lock
	at     string        // the boundary it was let go from
	err    error

	passed, ends int // boundaries, and the one at which its process ends
	crashed      bool
}

// stage runs the actors of one run side by side, one at a time.
type stage struct {
	w         *world
	players   []*player
	pick      func(enabled []int, last int) int
	log       []decision
	trace     []string
	deadlocks int
	aborted   chan struct{} // closed once the run is to end
}

// decision is one choice of who goes on.
type decision struct {
	enabled []int
	chosen  int
	forced  bool // who went last could not go on
}

var errAborted = errors.New("resumetest: the run has ended")

func newStage(w *world, c ending, pick func([]int, int) int) (*stage, error) {
	s := &stage{w: w, pick: pick, aborted: make(chan struct{})}
	for i, actor := range w.rig.scenario.Actors {
		p := &player{actor: actor, events: make(chan string), goOn: make(chan struct{})}
		a, err := w.as(actor.Name, i, func(point string) error { return s.at(p, point) })
		if err != nil {
			return nil, err
		}
		p.world = a
		s.players = append(s.players, p)
	}
	if c.at > 0 {
		s.players[c.actor].ends = c.at
	}
	return s, nil
}

// at is the hook of a player: it stops where the order matters.
func (s *stage) at(p *player, point string) error {
	if p.passed++; p.crashed || p.passed == p.ends {
		if !p.crashed && point == afterCommit {
			_ = s.w.afterCommit(p.world) // whoever breaks a promise ends the run
		}
		p.crashed, p.inTx = true, false
		return errCrash
	}
	switch point {
	case "begin":
		err := s.ended()
		if !s.w.rig.store.overlaps() { // nobody comes between its statements, but before the first
			err = s.stop(p, point)
		}
		p.inTx = true
		return err
	case afterCommit:
		p.inTx = false
		if err := s.w.afterCommit(p.world); err != nil {
			return err
		}
		return s.ended()
	}
	if outside(point) {
		p.inTx = false // also after a rollback, which has no boundary
	}
	if p.inTx && !s.w.rig.store.overlaps() || dull(point) {
		return s.ended()
	}
	return s.stop(p, point)
}

func (s *stage) stop(p *player, point string) error {
	select {
	case p.events <- point:
	case <-s.aborted:
		return errAborted
	}
	select {
	case <-p.goOn:
		return s.ended()
	case <-s.aborted:
		return errAborted
	}
}

func (s *stage) ended() error {
	select {
	case <-s.aborted:
		return errAborted
	default:
		return nil
	}
}

// outside says whether a boundary lies outside the database.
func outside(point string) bool {
	return strings.HasPrefix(point, "provider: ") || strings.HasPrefix(point, "step: ") || strings.HasPrefix(point, "clock: ")
}

// dull are statements whose moment nobody else can notice: the clock, and
// lines of the timeline.
func dull(point string) bool {
	return strings.HasPrefix(point, "select clock_timestamp()") || strings.HasPrefix(point, "select cast(unixepoch") ||
		strings.HasPrefix(point, "insert into") && strings.Contains(short(point), "history")
}

// play lets the actors act in the order that pick chooses.
func (s *stage) play() error {
	for _, p := range s.players {
		go func() {
			defer close(p.events)
			if p.err = s.stop(p, "start"); p.err == nil {
				p.err = guarded(p.world, p.actor.Do)
			}
		}()
		<-p.events
	}
	err := s.direct()
	close(s.aborted)
	if errors.Is(err, errStuck) {
		return err // it does not end
	}
	for _, p := range s.players {
		for range p.events { //nolint:revive // until it has ended
		}
	}
	return err
}

func (s *stage) direct() error {
	last := -1
	for {
		enabled := s.enabled()
		if len(enabled) == 0 {
			if s.over() {
				return s.failure()
			}
			if err := s.untangle(); err != nil {
				return err
			}
			continue
		}
		i := s.choose(enabled, last)
		last = i
		if err := s.letGo(i); err != nil {
			return err
		}
	}
}

func (s *stage) enabled() []int {
	var out []int
	for i, p := range s.players {
		if p.state == parkedAt {
			out = append(out, i)
		}
	}
	return out
}

func (s *stage) over() bool {
	for _, p := range s.players {
		if p.state != finished {
			return false
		}
	}
	return true
}

func (s *stage) choose(enabled []int, last int) int {
	forced := true
	for _, i := range enabled {
		forced = forced && i != last
	}
	i := s.pick(enabled, last)
	s.log = append(s.log, decision{enabled: enabled, chosen: i, forced: forced})
	return i
}

// letGo lets a player go on to its next boundary, its end or a lock, and then
// those who waited for a lock that it gave up.
func (s *stage) letGo(i int) error {
	p := s.players[i]
	p.state = running
	p.goOn <- struct{}{}
	if err := s.follow(i); err != nil {
		return err
	}
	for j, q := range s.players {
		if q.state == blockedOn {
			if err := s.follow(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll is how often the database is asked whether a player waits for a lock.
const poll = time.Millisecond

// longestAct is the longest between two boundaries.
const longestAct = time.Minute

var errStuck = errors.New("stuck")

// follow waits until a player stops. That it waits for a lock is the database's
// word, not a guess by the time it takes.
func (s *stage) follow(i int) error {
	p := s.players[i]
	limit := time.Now().Add(longestAct)
	for {
		select {
		case point, ok := <-p.events:
			s.stopped(p, point, ok)
			return nil
		default:
		}
		if p.state == blockedOn || !s.soon(p) {
			select {
			case point, ok := <-p.events:
				s.stopped(p, point, ok)
				return nil
			default:
			}
			blocked, err := s.w.rig.store.blocked(context.Background(), i)
			if err != nil {
				return err
			}
			if blocked {
				p.state = blockedOn
				return nil
			}
			p.state = running
			if time.Now().After(limit) {
				return fmt.Errorf("%w: actor %s has passed no boundary for %v, after %s; an actor must not wait for another", errStuck, p.actor.Name, longestAct, short(p.at))
			}
		} else {
			return nil
		}
	}
}

// soon waits a moment for a player to stop.
func (s *stage) soon(p *player) bool {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case point, ok := <-p.events:
		s.stopped(p, point, ok)
		return true
	case <-timer.C:
		return false
	}
}

func (s *stage) stopped(p *player, point string, ok bool) {
	if !ok {
		p.state = finished
		s.trace = append(s.trace, p.actor.Name+": end")
		return
	}
	p.state, p.at = parkedAt, point
	s.trace = append(s.trace, p.actor.Name+": "+short(point))
}

// untangle: everybody waits for somebody. The database ends one transaction.
func (s *stage) untangle() error {
	if !s.jumping() {
		// Who was let go a moment ago may not have been seen to go on yet. A circle
		// stands until the database ends it.
		if moved, err := s.moves(half); err != nil || moved {
			return err
		}
		s.deadlocks++
		s.w.fail(locks.Name+": "+locks.Promise, "%s", s.waiting())
		return s.w.failed()
	}
	moved, err := s.moves(20 * time.Second)
	if err == nil && !moved {
		err = errors.New("resumetest: everybody waits for a lock, and the database ends no transaction")
	}
	return err
}

const half = 100 * time.Millisecond // of the deadlock_timeout of a process

// moves waits for one of those who wait to go on.
func (s *stage) moves(within time.Duration) (bool, error) {
	limit := time.Now().Add(within)
	for time.Now().Before(limit) {
		for i, p := range s.players {
			if p.state != blockedOn {
				continue
			}
			if s.soon(p) {
				return true, nil
			}
			blocked, err := s.w.rig.store.blocked(context.Background(), i)
			if err != nil {
				return false, err
			}
			if !blocked {
				return true, s.follow(i)
			}
		}
	}
	return false, nil
}

// waiting says who waits, and behind which boundary.
func (s *stage) waiting() string {
	var out []string
	for _, p := range s.players {
		if p.state == blockedOn {
			out = append(out, p.actor.Name+" waits in: "+short(p.at))
		}
	}
	return strings.Join(out, "\n  ")
}

// jumping says whether the clock is one of those who wait. It takes locks that
// no program would.
func (s *stage) jumping() bool {
	for _, p := range s.players {
		if p.state == blockedOn && p.world.jumping.Load() {
			return true
		}
	}
	return false
}

// failure is what an actor returned that it must not.
func (s *stage) failure() error {
	for _, p := range s.players {
		if p.err != nil && !p.crashed {
			return s.w.acted(p.actor, p.err)
		}
	}
	return nil
}

var ourSchema = regexp.MustCompile(`"resumetest_\w+"\.|replywake_`)

// short is the beginning of a statement.
func short(point string) string {
	point = ourSchema.ReplaceAllString(strings.Join(strings.Fields(point), " "), "")
	if strings.HasPrefix(point, "select w.id, w.run") || strings.HasPrefix(point, "select m.id") || strings.HasPrefix(point, "select o.workflow") {
		if _, from, ok := strings.Cut(point, " from "); ok {
			point = "select … from " + from
		}
	}
	const most = 110
	if r := []rune(point); len(r) > most {
		point = string(r[:most]) + "…"
	}
	return point
}
