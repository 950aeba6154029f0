package efa

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

const pageLimit = 100 // the provider's largest

// Source reads the project's events by cursor: the complete record of what the
// key may see. It is an [events.Source].
type Source struct {
	client *Client
}

var _ events.Source = (*Source)(nil)

// Source is the pull door of the project. Its key needs the scope events:read.
func (c *Client) Source() *Source { return &Source{client: c} }

// Stream names the project as the key sees it.
func (s *Source) Stream() events.Stream { return s.client.stream }

// Sequenced is true: every polled event carries its number in the project.
func (s *Source) Sequenced() bool { return true }

// Page reads up to 100 events above after; 0 reads from the oldest that
// remains. It does not follow next_cursor, which is null on an empty page: the
// last event's Sequence is the cursor.
//
// A cursor that lies before the oldest event is [events.ErrCursorExpired]. An
// answer without a data array or has_more, or with an event that has no ID or
// no sequence, is [client.ErrBadAnswer].
func (s *Source) Page(ctx context.Context, after events.Cursor) (events.Page, error) {
	return s.page(ctx, after, pageLimit)
}

func (s *Source) page(ctx context.Context, after events.Cursor, limit int) (events.Page, error) {
	if after < 0 {
		return events.Page{}, &client.Error{Op: opEvents, Class: client.ClassRequest, Cause: events.ErrCursorInvalid}
	}
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if after > 0 {
		query.Set("cursor", after.String())
	}
	answer, err := s.client.get(ctx, opEvents, query, "events")
	if err != nil {
		return events.Page{}, err
	}
	return decodePage(answer)
}

const opEvents = "efa: list events"

func decodePage(answer client.Answer) (events.Page, error) {
	list, err := decodeList(answer)
	if err != nil {
		return events.Page{}, err
	}
	page := events.Page{More: list.more, Date: answer.Date}
	page.Events = slices.Grow(page.Events, len(list.rows))
	for _, row := range list.rows {
		ev, err := decodeRow(row)
		if err != nil {
			return events.Page{}, answer.Bad("an event without an ID or a sequence")
		}
		page.Events = append(page.Events, ev)
	}
	return page, nil
}

// listing is a page of any list.
type listing struct {
	rows []loose.Value
	more bool
	next string // next_cursor
}

func decodeList(answer client.Answer) (listing, error) {
	fields, err := loose.Decode(answer)
	if err != nil {
		return listing{}, err
	}
	rows, okRows := fields.List("data")
	more, okMore := fields.Flag("has_more")
	if !okRows || !okMore {
		return listing{}, answer.Bad("no list of data or no has_more")
	}
	return listing{rows: rows, more: more, next: fields.Scalar("next_cursor")}, nil
}

func decodeRow(raw loose.Value) (events.Event, error) {
	row := raw.Object()
	ev, err := decodeEvent(row, raw)
	if err != nil {
		return events.Event{}, err
	}
	ev.Sequence, err = events.ParseCursor(row.Scalar("sequence"))
	if err != nil || ev.Sequence == 0 {
		return events.Event{}, events.ErrCursorInvalid
	}
	return ev, nil
}
