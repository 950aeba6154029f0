package dedupe

// Open is how many pushes have no answer yet.
func Open(in *Inbox) int {
	in.queue.mu.Lock()
	defer in.queue.mu.Unlock()
	return in.queue.open
}

// Counts is the statement that counts what was not handled.
func Counts(in *Inbox) string { return in.st.Counts }

// PruneLimits, PruneContent and PruneDiscarded are statements of a pruning.
func PruneLimits(in *Inbox) string { return in.st.PruneLimits }

func PruneContent(in *Inbox) string { return in.st.PruneContent }

func PruneDiscarded(in *Inbox) string { return in.st.PruneDiscarded }
