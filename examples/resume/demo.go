package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// demonstration plays the provider and the counterparties, and runs the
// service as it is, a process of its own: this program again, with its
// provider's variables set. What happens between them is real HTTP on loopback.
type demonstration struct {
	provider fake
	service  *service
	scenes   scenes
	began    time.Time

	mu        sync.Mutex
	out       io.Writer
	bySubject map[string]*scene
	received  map[string]*scene // by inbound message
}

// demoWithin ends a demonstration in which something never comes.
const demoWithin = 30 * time.Second

// demo runs the demonstration on a provider of this name and returns the exit
// status: 0 only if nothing was lost and nothing doubled.
func demo(out io.Writer, name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	clean, err := demonstrate(ctx, out, name)
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(out, "\nThe demonstration did not come to its end: %v\n", err)
		return 1
	case !clean:
		return 1
	}
	return 0
}

func demonstrate(ctx context.Context, out io.Writer, name string) (clean bool, err error) {
	dir, err := os.MkdirTemp("", "replywake-demo-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	provider, err := fakes[name]() //nolint:contextcheck // it lives until Close
	if err != nil {
		return false, err
	}
	defer provider.Close()
	d := &demonstration{
		provider: provider, scenes: newScenes(provider), began: time.Now(),
		out: out, bySubject: map[string]*scene{}, received: map[string]*scene{},
	}
	env := append(provider.env(), "PROVIDER="+name, "DATABASE_URL=sqlite:"+filepath.Join(dir, "replywake.db"))
	if d.service, err = newService(ctx, env); err != nil {
		return false, err
	}
	defer d.service.kill()

	if err := d.play(ctx); err != nil {
		return false, errors.Join(err, d.service.lastWords())
	}
	return d.report(ctx)
}

// play is the demonstration's course.
func (d *demonstration) play(ctx context.Context) error {
	d.provider.watch(d.sent, d.reading)
	if err := d.service.start(ctx); err != nil {
		return err
	}
	d.provider.push(d.service.url) //nolint:contextcheck // it delivers until Close
	d.print("Replywake, a demonstration. An agent asks by e-mail, stops, and goes on when the answer comes.\n\n"+
		"  provider  %s\n"+
		"  service   %s, this program as process %d, with its provider's variables set and SQLite in a temporary file\n",
		d.provider.about(), d.service.url, d.service.pid())
	if lacks := d.provider.lacks(); lacks != "" {
		d.print("  left out  %s\n", lacks)
	}
	d.print("\n")

	// The ambiguous answer first: a person's decision rests for 10 s.
	if err := d.ask(ctx, d.scenes.ambiguous...); err != nil {
		return err
	}
	if err := d.ask(ctx, d.scenes.plain...); err != nil {
		return err
	}
	if err := d.decide(ctx); err != nil {
		return err
	}
	if err := d.finished(ctx, d.scenes.plain...); err != nil {
		return err
	}
	if err := d.ask(ctx, d.scenes.crash...); err != nil {
		return err
	}
	if err := d.finished(ctx, d.scenes.crash...); err != nil {
		return err
	}
	d.say("", "what a person decided may still be undone; it runs after 10 s")
	if err := d.finished(ctx, d.scenes.ambiguous...); err != nil {
		return err
	}
	return pause(ctx, time.Second) // for whatever would still be sent twice
}

// ask starts workflows.
func (d *demonstration) ask(ctx context.Context, scenes ...*scene) error {
	for _, s := range scenes {
		s.request.InboxID = d.provider.inbox()
		d.mu.Lock()
		d.bySubject[s.request.Subject] = s
		d.mu.Unlock()
		d.say(s.request.ID, "asks %s; %s", s.request.Counterparty, s.story)
		if err := d.service.call(ctx, "POST", "/workflows", s.request, nil); err != nil {
			return err
		}
	}
	return nil
}

// finished waits until workflows are done.
func (d *demonstration) finished(ctx context.Context, scenes ...*scene) error {
	for _, s := range scenes {
		for {
			var w workflowView
			if err := d.service.call(ctx, "GET", "/workflows/"+s.request.ID, nil, &w); err != nil {
				return err
			}
			if w.Status == "done" {
				break
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return fmt.Errorf("workflow %s is %s: %w", w.ID, w.Status, err)
			}
		}
	}
	return nil
}

// decide is the person: looks at what is unmatched, and binds it.
func (d *demonstration) decide(ctx context.Context) error {
	var queue struct{ Items []itemView }
	for len(queue.Items) == 0 {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("the ambiguous answer did not come before a person: %w", err)
		}
		if err := d.service.call(ctx, "GET", "/unmatched", nil, &queue); err != nil {
			return err
		}
	}
	it, to, other := queue.Items[0], d.scenes.ambiguous[0].request.ID, d.scenes.ambiguous[1]
	d.say("unmatched", "%s: %s, candidates %v. Nobody was woken", it.MessageID, it.Reason, it.Candidates)
	if err := d.service.call(ctx, "POST", "/unmatched/"+url.PathEscape(it.EventID)+"/bind", map[string]string{"workflow_id": to}, nil); err != nil {
		return err
	}
	d.say("unmatched", "a person reads it and binds it to %s", to)
	d.answer(other, letter{answers: other.question, text: "And 90 EUR for the other one."})
	return nil
}

// say prints a line of what happens.
func (d *demonstration) say(who, format string, args ...any) {
	d.print("%5.1f s  %-12s %s\n", time.Since(d.began).Seconds(), who, fmt.Sprintf(format, args...))
}

func (d *demonstration) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, format, args...)
}

func pause(ctx context.Context, t time.Duration) error {
	select {
	case <-time.After(t):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
