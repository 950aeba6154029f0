package doctor

import (
	"time"

	"github.com/replywake/replywake/events"
)

// push says how this process's push door stands.
func (e *examination) push() {
	h := e.config.Handler
	if h == nil {
		e.find(OK, NoPushDoor, "This process has no push door.")
		return
	}
	counts, secrets := h.Counts(), h.Secrets()
	e.report.Push, e.report.Secrets = &counts, secrets
	before := len(e.report.Findings)
	if counts.Unverified > 0 && verified(secrets) == 0 {
		// No warning: any stranger can knock at the door.
		e.find(Note, NothingVerified,
			"None of %s since this process began could be verified: if they are not strangers', see whether the secret is the endpoint's, of the right kind (verify.RawSecret or verify.Base64Secret), and whether a proxy changes the body.",
			several(int(counts.Unverified), "webhook", "webhooks"))
	}
	e.previous(secrets)
	if len(e.report.Findings) > before {
		return
	}
	if last := newest(secrets); last.Verified > 0 {
		e.find(OK, SecretsOK, "The last webhook came on %s, signed with secret %s.", moment(last.Last), plain(last.Version))
	} else {
		e.find(OK, SecretsOK, "No webhook has come since this process began.")
	}
}

const (
	endsSoon = 6 * time.Hour
	justUsed = time.Hour
	unused   = day // longer than any request that a rotation leaves under way
)

// previous looks at the secrets that are only still accepted.
func (e *examination) previous(secrets []events.SecretUse) {
	now := e.report.At
	for i, s := range secrets {
		ended := !s.Until.IsZero() && now.After(s.Until)
		if i == 0 || s.Gone || ended {
			continue
		}
		active := later(s.Last, s.Since)
		switch {
		case s.Verified > 0 && now.Sub(s.Last) < justUsed && !s.Until.IsZero() && s.Until.Sub(now) < endsSoon:
			e.find(Warning, SecretStillUsed,
				"The previous secret %s verified a webhook on %s and ends on %s: finish the rotation at the provider, or give it a later Until.",
				plain(s.Version), moment(s.Last), moment(s.Until))
		case now.Sub(active) >= unused && secrets[0].Last.After(active):
			e.find(Note, SecretUnused, "The previous secret %s has verified nothing for %s: it can go.", plain(s.Version), now.Sub(active).Round(time.Hour))
		}
	}
}

func verified(secrets []events.SecretUse) (n int64) {
	for _, s := range secrets {
		n += s.Verified
	}
	return n
}

func newest(secrets []events.SecretUse) (last events.SecretUse) {
	for _, s := range secrets {
		if s.Last.After(last.Last) {
			last = s
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
