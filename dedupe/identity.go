package dedupe

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// open stores who the stream is at its first use, and afterwards compares. It
// asks the database once per Inbox.
func (in *Inbox) open(ctx context.Context) error {
	if in.opened.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.CommitTimeout, errSlow)
	defer cancel()
	changed := false
	err := in.db.Tx(ctx, func(tx sqldb.Tx) (err error) {
		changed, err = in.identify(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	if changed {
		in.log.LogAttrs(ctx, slog.LevelWarn,
			"the key is another than before: if the provider takes it, events of inboxes that it sees for the first time lie behind the cursor; sweep from an earlier one for them")
	}
	in.opened.Store(true)
	return nil
}

// identify says whether the stream is known by another credential.
func (in *Inbox) identify(ctx context.Context, tx sqldb.Tx) (changed bool, err error) {
	given := in.cfg.Stream
	if _, err := tx.Exec(ctx, in.st.Enrol, given.Name, given.Origin, given.Environment, given.Credential, rand.Text()); err != nil {
		return false, err
	}
	var known events.Stream
	if err := sqldb.One(ctx, tx, in.st.Identity, []any{given.Name}, &known.Origin, &known.Environment, &known.Credential); err != nil {
		return false, err
	}
	if err := in.compare(known); err != nil {
		return false, err
	}
	merged := events.Stream{
		Origin: cmp.Or(given.Origin, known.Origin), Environment: cmp.Or(given.Environment, known.Environment),
		Credential: cmp.Or(given.Credential, known.Credential),
	}
	if merged == known {
		return false, nil
	}
	changed = known.Credential != "" && merged.Credential != known.Credential
	_, err = tx.Exec(ctx, in.st.Identify, given.Name, merged.Origin, merged.Environment, merged.Credential, changed)
	return changed, err
}

// compare refuses another project or environment under a known name.
func (in *Inbox) compare(known events.Stream) error {
	for _, c := range []struct{ what, known, given string }{
		{"origin", known.Origin, in.cfg.Stream.Origin},
		{"environment", known.Environment, in.cfg.Stream.Environment},
	} {
		if c.known != "" && c.given != "" && c.known != c.given {
			return fmt.Errorf("%w: %q has the %s %q, not %q", events.ErrForeignStream, in.name(), c.what, c.known, c.given)
		}
	}
	return nil
}
