package dedupe

// Open is how many pushes have no answer yet.
func Open(in *Inbox) int {
	in.queue.mu.Lock()
	defer in.queue.mu.Unlock()
	return in.queue.open
}
