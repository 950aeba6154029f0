package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
)

// report prints the service's timelines and then what the provider counted.
func (d *demonstration) report(ctx context.Context) (clean bool, err error) {
	d.print("\nThe service's timelines:\n")
	for _, s := range d.scenes.all() {
		if err := d.timeline(ctx, s); err != nil {
			return false, err
		}
	}
	if err := d.service.stop(ctx); err != nil {
		return false, err
	}
	counts := d.count()
	d.print("\nCounted at the provider, not by the service:\n\n")
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "  workflow\treceived\twoken\tsent\t")
	for _, s := range d.scenes.all() {
		c := counts.of(s.request.ID)
		_, _ = fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t\n", s.request.ID, c.received, c.woken, c.sent)
	}
	if err := t.Flush(); err != nil {
		return false, err
	}
	lost, doubled := counts.verdict()
	d.print("\n  %d lost      every message that was received was acknowledged\n"+
		"  %d doubled   none twice, no question twice; %d send came again after the crash, under its first key\n\n",
		lost, doubled, counts.replays)
	for _, v := range d.provider.Violations() {
		d.print("  the provider objects: %s\n", v)
	}
	return lost == 0 && doubled == 0 && len(d.provider.Violations()) == 0, nil
}

func (d *demonstration) timeline(ctx context.Context, s *scene) error {
	var w workflowView
	if err := d.service.call(ctx, "GET", "/workflows/"+s.request.ID, nil, &w); err != nil {
		return err
	}
	d.print("\n  %s: %s\n", w.ID, s.story)
	for _, m := range w.Timeline {
		line := fmt.Sprintf("  %7.2f s  %-10s %s", m.At.Sub(d.began).Seconds(), m.What, m.Detail)
		d.print("%s\n", strings.TrimRight(line, " "))
	}
	return nil
}

// tally counts what passed the provider.
type tally struct {
	workflows map[string]*workflowTally
	acks      map[string]int // received message -> how often it was acknowledged
	replays   int
	stray     int // mail that nobody should have got
}

type workflowTally struct{ received, woken, sent, questions int }

func (t *tally) of(workflow string) *workflowTally {
	if t.workflows[workflow] == nil {
		t.workflows[workflow] = &workflowTally{}
	}
	return t.workflows[workflow]
}

func (d *demonstration) count() *tally {
	t := &tally{workflows: map[string]*workflowTally{}, acks: map[string]int{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	for message, s := range d.received {
		t.of(s.request.ID).received++
		t.acks[message] = 0
	}
	for _, m := range d.provider.sends() {
		if s := d.sceneOf(m); s != nil {
			t.add(s.request.ID, m)
		} else {
			t.stray++
		}
	}
	return t
}

func (t *tally) add(workflow string, m sending) {
	c := t.of(workflow)
	c.sent++
	t.replays += m.replays
	ids, ack := strings.CutPrefix(m.text, "ack: ")
	if !ack {
		c.questions++
		return
	}
	c.woken++
	for id := range strings.SplitSeq(ids, ",") {
		t.acks[id]++
	}
}

// verdict is what must be 0.
func (t *tally) verdict() (lost, doubled int) {
	doubled = t.stray
	for _, times := range t.acks {
		if times == 0 {
			lost++
		}
		doubled += max(0, times-1)
	}
	for _, c := range t.workflows {
		if c.questions == 0 {
			lost++
		}
		doubled += max(0, c.questions-1)
	}
	return lost, doubled
}
