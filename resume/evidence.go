package resume

import "sync"

// evidence tells a message that cannot be read from a provider that is away: it
// is the message if its read failed, another succeeded, and its read failed
// again. While nothing can be read nothing is a message's fault, however long
// it takes. It is a process's own: after a start it has to be found anew.
type evidence struct {
	mu     sync.Mutex
	reads  int64             // that succeeded
	failed map[address]int64 // what failed last: the reads that had succeeded by then
}

// remembered bounds what is kept in a long outage.
const remembered = 100_000

func (v *evidence) succeeded(what address) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	delete(v.failed, what)
}

// blames says whether what was to be read, not the service, is the trouble of a
// read that failed.
func (v *evidence) blames(what address, err error) bool {
	return isMissing(err) || !isRefused(err) && v.against(what)
}

// against notes that a read failed with the service's fault, and says whether
// it is not the service's.
func (v *evidence) against(what address) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed == nil || len(v.failed) >= remembered {
		v.failed = map[address]int64{}
	}
	before, again := v.failed[what]
	v.failed[what] = v.reads
	return again && v.reads > before
}
