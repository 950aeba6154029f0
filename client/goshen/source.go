package goshen

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
	"github.com/replywake/replywake/events"
)

// Source is the pull door: it shows what is received and unread in the
// client's inboxes until that is settled. It is an [events.Source] without
// sequences, and an [events.Leaver].
//
// It never follows a page's token. Settling takes messages out of the list that
// the token counts, so the next page would begin too late and pass over
// messages; the first page is read again until it is empty.
type Source struct {
	client  *Client
	turn    atomic.Uint64 // counts pages: where the next one begins
	leftOut leftOut
}

var (
	_ events.Source = (*Source)(nil)
	_ events.Leaver = (*Source)(nil)
)

// Source is the pull door of the client's inboxes. Its key needs the scopes
// messages:read and messages:write.
//
// An inbox that is added to a stream which has a position shows all its unread
// mail, also what is old: take the label away before.
func (c *Client) Source() *Source { return &Source{client: c} }

// Stream names what the key sees.
func (s *Source) Stream() events.Stream { return s.client.stream }

// Sequenced is false: after means nothing here.
func (s *Source) Sequenced() bool { return false }

// Head is 0: there are no sequences.
func (s *Source) Head(context.Context) (events.Cursor, error) { return 0, nil }

// Page shows up to 100 unread messages of one inbox, oldest first; it is empty
// if no inbox has any. Inboxes take turns, so none waits for another to be
// empty. One that is refused does not keep the others from being read: its
// error comes once none of them has anything to show, so that a sweep ends with
// it and does not count as having received everything.
func (s *Source) Page(ctx context.Context, _ events.Cursor) (events.Page, error) {
	inboxes := s.client.inboxes
	turn := s.turn.Add(1) - 1
	var page events.Page
	var refused []error
	for i := range inboxes {
		var err error
		page, err = s.page(ctx, inboxes[(turn+uint64(i))%uint64(len(inboxes))])
		switch {
		case err != nil && !isInboxesOwn(err):
			return events.Page{}, err
		case err != nil:
			refused = append(refused, err)
		case len(page.Events) > 0 || page.More:
			return page, nil
		}
	}
	if refused != nil {
		return events.Page{}, errors.Join(refused...)
	}
	return page, nil
}

// isInboxesOwn: the trouble may be this inbox's alone, so that asking for the
// next one is worth it.
func isInboxesOwn(err error) bool {
	class := client.ClassOf(err)
	return class == client.ClassRequest || class == client.ClassCredential
}

func (s *Source) page(ctx context.Context, inbox string) (events.Page, error) {
	query := Query{Labels: []string{LabelReceived, LabelUnread}}.values()
	fields, answer, err := s.client.getObject(ctx, opList, query, "inboxes", inbox, "messages")
	if err != nil {
		return events.Page{}, err
	}
	rows, ok := fields.List("messages")
	if !ok {
		return events.Page{}, answer.Bad("no list of messages")
	}
	page := events.Page{More: fields.Text("nextPageToken") != "", Date: answer.Date}
	for _, row := range slices.Backward(rows) {
		if err := s.appendRow(&page, answer, row); err != nil {
			return events.Page{}, err
		}
	}
	return page, nil
}

// appendRow takes only what was asked for: a list that disregards its labels
// would show mail that was sent as mail that came.
func (s *Source) appendRow(page *events.Page, answer client.Answer, row loose.Value) error {
	m, err := decodeMessage(answer, row.Object())
	switch {
	case err != nil:
		return err
	case m.Quarantined():
		return nil
	case !slices.Contains(m.Labels, LabelReceived) || !slices.Contains(m.Labels, LabelUnread):
		return answer.Bad("a message without the labels asked for")
	}
	if ev := eventOf(m, row); !s.leftOut.has(ev.ID) {
		page.Events = append(page.Events, ev)
	}
	return nil
}

const settlers = 8 // requests at a time

// Settle takes the label unread away from the events' messages and adds
// [Config.Handled]. A message that is gone is settled. After an error the
// others are settled nonetheless; the same again changes nothing. The error is
// of class [client.ClassRequest] if Goshen will not change those messages'
// labels and nothing else went wrong: see [Source.LeaveOut].
func (s *Source) Settle(ctx context.Context, list []events.Event) error {
	errs := make([]error, len(list))
	free := make(chan struct{}, settlers)
	var work sync.WaitGroup
	for i, ev := range list {
		free <- struct{}{}
		work.Go(func() {
			errs[i] = s.settle(ctx, ev)
			<-free
		})
	}
	work.Wait()
	for i, ev := range list {
		if isRefused(errs[i]) {
			s.leftOut.refused(ev.ID)
		}
	}
	if others := slices.DeleteFunc(slices.Clone(errs), isRefused); errors.Join(others...) != nil {
		return errors.Join(others...)
	}
	return errors.Join(errs...)
}

func (s *Source) settle(ctx context.Context, ev events.Event) error {
	err := s.client.LabelMessage(ctx, ev.Inbox, ev.Message, Labels{
		Add: []string{s.client.handled}, Remove: []string{LabelUnread},
	})
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}
