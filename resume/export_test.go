package resume

// ReadsAMinute changes how much unmatched mail of an inbox an engine reads.
func ReadsAMinute(e *Engine, n int) { e.reads.most = n }
