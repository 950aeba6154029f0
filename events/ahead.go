package events

import "context"

// answer is a page that was read ahead, or the error that came in its place.
type answer struct {
	page  Page
	after Cursor // the position it was asked with
	done  bool   // the head
	err   error
}

// readAhead reads the walk's pages while others are committed. It ends with an
// answer that is done or has an error, or with ctx, and then closes the
// channel.
func readAhead(ctx context.Context, w *walk, pages int) <-chan answer {
	answers := make(chan answer, pages)
	go func() {
		defer close(answers)
		for !w.done {
			after := w.after
			page, err := w.next(ctx)
			select {
			case answers <- answer{page, after, w.done, err}:
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
