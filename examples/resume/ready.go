package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// readiness answers /readyz: whether this process does all that it is for.
// Its texts are for whoever can reach the door, so they name no host.
type readiness struct {
	maxAge time.Duration // of what was received last
	log    *slog.Logger

	mu      sync.Mutex
	engine  *resume.Engine
	sweeper *events.Sweeper
	opened  bool

	asked  time.Time // when the answer was made
	answer map[string][]string
}

// watch is called once there is something to ask.
func (r *readiness) watch(eng *resume.Engine, sweeper *events.Sweeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine, r.sweeper = eng, sweeper
}

// open is called once the doors are open and the engine runs.
func (r *readiness) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened, r.asked = true, time.Time{}
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	faults := r.faults(req.Context())
	if len(faults) == 0 {
		writeJSON(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "not_ready": faults})
}

// faults asks the database at most twice a second, however many ask.
func (r *readiness) faults(ctx context.Context) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < 500*time.Millisecond {
		return r.answer
	}
	faults := map[string][]string{}
	if !r.opened {
		faults["start"] = []string{"waiting for the database or the provider"}
	}
	if r.engine != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := r.engine.Ready(ctx); err != nil {
			faults["engine"] = []string{r.outward(err)}
		}
		if err := r.sweeper.Health().Ready(time.Now(), r.maxAge); err != nil {
			faults["sweep"] = lines(err)
		}
	}
	r.asked, r.answer = time.Now(), faults
	return faults
}

// lines are the texts of errors that are joined, each once: two inboxes may have
// one trouble.
func lines(err error) (list []string) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.ContainsFunc(list, func(said string) bool { return strings.HasSuffix(said, line) }) {
			list = append(list, line)
		}
	}
	return list
}

// outward keeps to itself what a database driver says: it names host and user.
func (r *readiness) outward(err error) string {
	if errors.Is(err, resume.ErrSchema) || errors.Is(err, resume.ErrRefused) {
		return err.Error()
	}
	r.log.Warn("not ready", "error", err)
	return "the database does not answer"
}
