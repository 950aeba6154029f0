package dedupe

// Open is how many pushes have no answer yet.
func Open(in *Inbox) int {
	in.queue.mu.Lock()
	defer in.queue.mu.Unlock()
	return in.queue.open
}

// Counts is the statement that counts what was not handled.
func Counts(in *Inbox) string { return in.st.Counts }
