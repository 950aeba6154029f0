package e2e_test

import (
	"strings"
	"sync"
)

// point is a boundary of a life. What a process reads ahead runs beside its
// other work, so each of the two is counted apart.
type point struct {
	act   int
	ahead bool
	n     int
}

// nowhere is no point of any life.
var nowhere = point{act: -1}

// mode says what happens at the point.
type mode int

const (
	alone   mode = iota // the process ends there; another takes over
	beside              // the same, and the other has been sweeping all the while
	stalled             // it stands still; another takes over; it wakes up and goes on
	modes
)

func (m mode) String() string {
	return [...]string{"crash", "crash beside a second process", "stall, and a second process takes over"}[m]
}

// passed is a point that a process came to.
type passed struct {
	point
	around bool // before the act: a webhook came while time went by
	free   bool // a second process can work while this one stands still: not inside a transaction
}

// has says whether something is to happen there.
func (p passed) has(m mode) bool { return m == alone || !p.around && (m == beside || p.free) }

// ending is the hook of a process that ends at a point, or stands still there.
type ending struct {
	mu    sync.Mutex
	at    point
	stall func() error // instead of ending

	act    int
	around bool
	inTx   bool
	n      map[bool]int // points of the act so far, by point.ahead
	points []passed

	dead     bool
	reached  bool
	where    string
	stallErr error
}

func (e *ending) hook(text string) error {
	stall, err := e.come(text)
	if stall == nil {
		return err
	}
	err = stall() // unlocked: the process goes on beside it
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stallErr = err
	return nil
}

// come is a boundary; from the one at which the process ends, everything in it
// fails.
func (e *ending) come(text string) (stall func() error, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead {
		return nil, errCrash
	}
	if e.pass(text) != e.at || e.reached {
		return nil, nil
	}
	e.reached, e.where = true, text
	if e.stall != nil {
		return e.stall, nil
	}
	e.dead = true
	return nil, errCrash
}

func (e *ending) pass(text string) point {
	ahead := strings.HasPrefix(text, "http ")
	free := ahead || !e.inTx || text == "begin" || text == "after commit"
	switch text {
	case "begin":
		e.inTx = true
	case "after commit":
		e.inTx = false
	}
	e.n[ahead]++
	here := point{e.act, ahead, e.n[ahead]}
	e.points = append(e.points, passed{here, e.around, free && !e.around})
	return here
}

// begins is the next act, or what happens before it.
func (e *ending) begins(act int, around bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if act != e.act || e.n == nil {
		e.n = map[bool]int{}
	}
	e.act, e.around, e.inTx = act, around, false
}

// stalls has the process stand still at its point.
func (e *ending) stalls(meanwhile func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stall = meanwhile
}

// die ends the process wherever it is, and says whether it was alive.
func (e *ending) die() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := !e.dead
	e.dead = true
	return was
}

func (e *ending) alive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.dead
}
