package dedupe

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// park puts away an event on which the handler failed alone, and lets the
// cursor pass it. Its ID is claimed as if it had been handled. If meanwhile
// somebody else has handled it, there is nothing to park.
func (in *Inbox) park(ctx context.Context, p *part, fail *failure) (out outcomes, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.cfg.CommitTimeout, errSlow)
	defer cancel()
	ev := p.events[0]
	content, err := encode(ev)
	if err != nil {
		return nil, err
	}
	err = in.db.Tx(ctx, func(tx sqldb.Tx) (err error) {
		if out, err = in.claim(ctx, tx, p); err != nil {
			return err
		}
		if out[ev.ID] == fresh {
			out[ev.ID] = parked
			if _, err := tx.Exec(ctx, in.st.Park, in.name(), ev.ID, content, fail.text(), in.pause(1)); err != nil {
				return err
			}
		}
		return in.moveCursor(ctx, tx, p.cursor)
	})
	if err == nil && out[ev.ID] == parked {
		in.logFailure(ctx, slog.LevelWarn, "event parked", ev.ID, 1, fail)
	}
	return out, wrap("park", err)
}

// logFailure says what kind of error it was and, of a panic, where. What the
// error says may quote mail.
func (in *Inbox) logFailure(ctx context.Context, level slog.Level, msg, id string, attempts int, fail *failure) {
	attrs := []slog.Attr{slog.String("event", id), slog.Int("attempts", attempts), slog.String("error", describe(fail.err))}
	if p, ok := errors.AsType[*panicError](fail.err); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	in.log.LogAttrs(ctx, level, msg, attrs...)
}

const longestPause = 4 * time.Hour

// pause is how long an event rests after so many attempts.
func (in *Inbox) pause(attempts int) time.Duration {
	d := in.cfg.RetryAfter
	for i := 1; i < attempts && d < longestPause; i++ {
		d *= 2
	}
	d = min(d, max(longestPause, in.cfg.RetryAfter))
	return d - rand.N(d/10+1) // those that failed together need not come back together
}

// content is an event as it is parked, its data spelled out: client.Raw hides
// it from encoders.
type content struct {
	events.Event
	Data []byte
}

func encode(ev events.Event) ([]byte, error) {
	return json.Marshal(content{ev, ev.Data.Bytes()})
}

func decode(b []byte) (events.Event, error) {
	var c content
	if err := json.Unmarshal(b, &c); err != nil {
		return events.Event{}, errContent
	}
	c.Event.Data = client.NewRaw(c.Data)
	return c.Event, nil
}

// cut bounds an error text and makes it storable.
func cut(s string) string {
	const most = 500
	if len(s) > most {
		s = s[:most]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "")
	}
	return strings.ReplaceAll(s, "\x00", "")
}
