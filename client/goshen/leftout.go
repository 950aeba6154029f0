package goshen

import (
	"sync"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

const (
	leftOutFor = time.Hour // then it is tried again
	mostNoted  = 10_000
)

// leftOut are the messages whose labels Goshen refuses to change, by event ID.
type leftOut struct {
	mu    sync.Mutex
	until map[string]time.Time // the zero time: refused, and shown still
}

func (l *leftOut) refused(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= mostNoted {
		l.until = map[string]time.Time{} // what is refused still is noted again
	}
	l.until[id] = time.Time{}
}

func (l *leftOut) leave(evs []events.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range evs {
		if _, refused := l.until[ev.ID]; refused {
			l.until[ev.ID] = time.Now().Add(leftOutFor)
		}
	}
}

func (l *leftOut) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until[id])
}

// LeaveOut is [events.Leaver]: for an hour no page shows those of the events
// that Settle was refused. More than a page of such mail hides what is older.
func (s *Source) LeaveOut(evs []events.Event) { s.leftOut.leave(evs) }

// isRefused: labelling this message is what Goshen does not do.
func isRefused(err error) bool { return err != nil && client.ClassOf(err) == client.ClassRequest }
