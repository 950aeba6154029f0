package verify

import "time"

// Version is one of a Verifier's secrets, by its name alone.
type Version struct {
	Name  string    // [Secret.Version]
	Until time.Time // [Secret.Until]; zero: no end
	Since time.Time // when the Verifier got it by this name
}

// Versions are the secrets in the order in which they are tried, also those
// that are past their end.
func (v *Verifier) Versions() []Version {
	c := v.get()
	if c == nil {
		return nil
	}
	var list []Version
	for _, k := range c.ring.Load().keys {
		list = append(list, Version{k.version, k.until, k.since})
	}
	return list
}

// Tolerance is the Config's; 0 if nothing verifies.
func (v *Verifier) Tolerance() time.Duration {
	c := v.get()
	if c == nil {
		return 0
	}
	return c.config.Tolerance
}
