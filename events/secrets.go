package events

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/replywake/replywake/verify"
)

// SecretUse says what a signing secret has verified since the [Handler] was
// made, in this process.
type SecretUse struct {
	Version  string    `json:"version"`
	Since    time.Time `json:"since,omitzero"` // when the Verifier got it; zero if it is gone
	Until    time.Time `json:"until,omitzero"` // zero: no end
	Gone     bool      `json:"gone,omitempty"` // it was replaced, and verifies no more
	Verified int64     `json:"verified"`
	Last     time.Time `json:"last,omitzero"`
}

// Secrets are the Verifier's secrets in the order in which they are tried, the
// current one first, and after them those that were replaced. A previous one
// that is seen no more can go.
func (h *Handler) Secrets() []SecretUse {
	used := h.secrets.all()
	var list []SecretUse
	for _, v := range h.verifier.Versions() {
		use := used[v.Name]
		if use.Last.Before(v.Since) { // the name was another secret's
			use = SecretUse{}
		}
		use.Version, use.Since, use.Until = v.Name, v.Since, v.Until
		list = append(list, use)
		delete(used, v.Name)
	}
	replaced := slices.SortedFunc(maps.Values(used), func(a, b SecretUse) int { return b.Last.Compare(a.Last) })
	for _, use := range replaced {
		use.Gone = true
		list = append(list, use)
	}
	return list
}

// Verifier is the one that the Handler was made with.
func (h *Handler) Verifier() *verify.Verifier { return h.verifier }

// secretUses counts by version. Versions are the program's own words, but a
// program that rotates for years is not to grow by it.
type secretUses struct {
	sync.Mutex
	by map[string]SecretUse
}

const maxSecretUses = 16

func (u *secretUses) note(version string) {
	u.Lock()
	defer u.Unlock()
	use, known := u.by[version]
	if !known && len(u.by) >= maxSecretUses {
		u.forget()
	}
	if u.by == nil {
		u.by = map[string]SecretUse{}
	}
	use.Version, use.Last = version, time.Now()
	use.Verified++
	u.by[version] = use
}

// forget drops the one that was not used for longest.
func (u *secretUses) forget() {
	var oldest SecretUse
	for _, use := range u.by {
		if oldest.Last.IsZero() || use.Last.Before(oldest.Last) {
			oldest = use
		}
	}
	delete(u.by, oldest.Version)
}

func (u *secretUses) all() map[string]SecretUse {
	u.Lock()
	defer u.Unlock()
	return maps.Clone(u.by)
}
