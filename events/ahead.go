package events

import (
	"context"
	"errors"
	"time"
)

// answer is a page that was read ahead, or the error that came in its place.
type answer struct {
	page  Page
	after Cursor // the position it was asked with
	done  bool   // the head
	err   error
}

// readAhead reads pages while others are committed. It ends with an
// answer that is done or has an error, or with ctx, and then closes the
// channel.
func (w *sweep) readAhead(ctx context.Context, reading *walk) <-chan answer {
	answers := make(chan answer, w.config.PagesPerCommit)
	go func() {
		defer close(answers)
		for !reading.done {
			after := reading.after
			page, err := reading.next(ctx)
			w.status.clock(page.Date)
			select {
			case answers <- answer{page, after, reading.done, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return answers
}

// gathered is what the next commit takes, and how the reading ended if it has.
type gathered struct {
	events []Event
	head   bool
	err    error
}

// gather waits for a page, keeping the lease, and takes along what has been
// read ahead. An error of the source comes after the pages before it.
func (w *sweep) gather(ctx context.Context, pages <-chan answer) (gathered, error) {
	var got gathered
	first, err := w.wait(ctx, pages)
	if err != nil {
		return got, err
	}
	w.add(&got, first)
	for n := 1; n < w.config.PagesPerCommit && !got.head && got.err == nil; n++ {
		select {
		case next, open := <-pages:
			if !open {
				return got, nil
			}
			w.add(&got, next)
		default:
			return got, nil
		}
	}
	return got, nil
}

func (w *sweep) add(got *gathered, a answer) {
	if a.err != nil {
		got.err = pageError(a.after, a.err)
		if errors.Is(a.err, ErrCursorExpired) {
			got.err = &expiry{a.after, got.err}
		}
		return
	}
	w.report.Pages++
	got.events = append(got.events, a.page.Events...)
	got.head = a.done
}

func (w *sweep) wait(ctx context.Context, pages <-chan answer) (answer, error) {
	renewal := time.NewTicker(max(w.config.Lease/3, time.Millisecond))
	defer renewal.Stop()
	for {
		select {
		case a, open := <-pages:
			if !open {
				return answer{}, context.Cause(ctx)
			}
			return a, w.keepLease(ctx)
		case <-renewal.C:
			if err := w.keepLease(ctx); err != nil {
				return answer{}, err
			}
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		}
	}
}
