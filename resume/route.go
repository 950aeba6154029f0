package resume

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// route makes one mail row of each event the engine uses and places those
// whose keys are known. A constant number of statements, whatever the number
// of events.
func (e *Engine) route(ctx context.Context, tx sqldb.Tx, fresh []events.Event) error {
	used, err := e.used(fresh)
	if err != nil || len(used) == 0 {
		return err
	}
	if err := e.compare(ctx, tx); err != nil {
		return err
	}
	l := e.timeless(tx)
	keys, err := l.lookUp(ctx, used, l.clock())
	if err != nil {
		return err
	}
	rows := make([]*mailRow, len(used))
	for i := range used {
		rows[i] = e.mailOf(&used[i])
		l.place(rows[i], keys)
	}
	if err := l.insert(ctx, rows, keys); err != nil {
		return err
	}
	return l.save(ctx)
}

// used are the events that the engine acts on: of its inboxes and of a kind it
// knows. An approval may come without an inbox; its ID says whose it is.
func (e *Engine) used(fresh []events.Event) ([]events.Event, error) {
	var out []events.Event
	for _, ev := range fresh {
		if ev.Stream != e.stream {
			return nil, fmt.Errorf("%w: have %q, the engine's Mail is %q", ErrStream, ev.Stream, e.stream)
		}
		if !e.cfg.owns(ev.Inbox) && (ev.Kind != events.KindApproval || ev.Inbox != "") {
			continue
		}
		for _, name := range []*string{&ev.ID, &ev.Inbox, &ev.Thread, &ev.Message, &ev.Approval} {
			*name = sqldb.Text(*name)
		}
		switch ev.Kind {
		case events.KindReceived, events.KindQueued, events.KindDelivery, events.KindBounce, events.KindComplaint:
			out = append(out, ev)
		case events.KindApproval:
			if ev.Decision == events.DecisionRejected {
				out = append(out, ev)
			}
		}
	}
	return out, nil
}

func (e *Engine) mailOf(ev *events.Event) *mailRow {
	m := &mailRow{
		stream: e.stream, eventID: ev.ID, kind: ev.Kind, inbox: ev.Inbox, thread: ev.Thread, message: ev.Message, approval: ev.Approval,
		delivery: ev.Delivery, version: ev.Version, place: placeUnplaced,
	}
	switch ev.Kind {
	case events.KindBounce:
		m.delivery = client.DeliveryBounced
	case events.KindComplaint:
		m.delivery = client.DeliveryComplained
	}
	return m
}

// address names something of an inbox: a thread or a message.
type address struct{ inbox, id string }

// known is what is stored about the keys of some events.
type known struct {
	threads   map[address]owner    // who owns a thread
	sent      map[address]*sendRow // our own messages
	approvals map[string]*sendRow  // held sends
}

type owner struct{ workflow, run string }

// lookUp finds what the events' keys belong to and locks those workflows. The
// keys are read again under the locks: a thread may have moved meanwhile, a
// send may have had its outcome. What then belongs to a workflow that is not
// locked counts as unknown: it is the matcher's. More statements may come first.
func (l *ledger) lookUp(ctx context.Context, used []events.Event, first ...sqldb.Statement) (k known, err error) {
	keys := keysOf(used)
	if err := l.tx.Together(ctx, append(first, l.find(keys, &k)...)...); err != nil {
		return k, err
	}
	ids := k.workflows()
	if len(ids) == 0 {
		return k, nil
	}
	err = l.tx.Together(ctx, append(l.locking(ids), l.find(keys, &k)...)...)
	k.keep(ids)
	return k, err
}

// keys are what events name.
type keys struct {
	threads, messages sqldb.Rows
	approvals         []string
}

func keysOf(used []events.Event) (k keys) {
	for _, ev := range used {
		if ev.Thread != "" {
			k.threads = append(k.threads, map[string]any{"inbox": ev.Inbox, "thread": ev.Thread})
		}
		if ev.Message != "" && ev.Kind != events.KindReceived {
			k.messages = append(k.messages, map[string]any{"inbox": ev.Inbox, "message": ev.Message})
		}
		if ev.Kind == events.KindApproval {
			k.approvals = append(k.approvals, ev.Approval)
		}
	}
	return k
}

// find reads into k what the keys belong to.
func (l *ledger) find(keys keys, k *known) (statements []sqldb.Statement) {
	*k = known{threads: map[address]owner{}, sent: map[address]*sendRow{}, approvals: map[string]*sendRow{}}
	if len(keys.threads) > 0 {
		statements = append(statements, sqldb.Statement{
			Query: l.e.st.ThreadOwners, Args: []any{l.e.cfg.Name, l.e.stream, keys.threads}, Row: k.readOwner,
		})
	}
	if len(keys.messages) > 0 {
		inboxes, ids := columnsOf(keys.messages)
		statements = append(statements, sqldb.Statement{
			Query: l.e.st.SendByMessage, Args: []any{l.e.cfg.Name, inboxes, ids},
			Row: each(scanSend, func(s *sendRow) { k.sent[address{s.inbox, s.message}] = s }),
		})
	}
	if len(keys.approvals) > 0 {
		statements = append(statements, sqldb.Statement{
			Query: l.e.st.SendByAppr, Args: []any{l.e.cfg.Name, keys.approvals},
			Row: each(scanSend, func(s *sendRow) { k.approvals[s.approval] = s }),
		})
	}
	return statements
}

func (k *known) readOwner(scan sqldb.Scan) error {
	var a address
	var o owner
	err := scan(&a.inbox, &a.id, &o.workflow, &o.run)
	if o.workflow != "" {
		k.threads[a] = o
	}
	return err
}

// sentAs finds the send whose message this is, nil if it is none of ours.
func (l *ledger) sentAs(ctx context.Context, inbox, message string) (*sendRow, error) {
	var k known
	err := l.tx.Together(ctx, l.find(keys{messages: sqldb.Rows{{"inbox": inbox, "message": message}}}, &k)...)
	return k.sent[address{inbox, message}], err
}

// keep forgets what belongs to other workflows.
func (k known) keep(ids []string) {
	other := func(id string) bool { return !slices.Contains(ids, id) }
	maps.DeleteFunc(k.threads, func(_ address, o owner) bool { return other(o.workflow) })
	maps.DeleteFunc(k.sent, func(_ address, s *sendRow) bool { return other(s.workflow) })
	maps.DeleteFunc(k.approvals, func(_ string, s *sendRow) bool { return other(s.workflow) })
}

func (k known) workflows() []string {
	var ids []string
	for _, o := range k.threads {
		ids = append(ids, o.workflow)
	}
	for _, s := range k.sent {
		ids = append(ids, s.workflow)
	}
	for _, s := range k.approvals {
		ids = append(ids, s.workflow)
	}
	return ids
}

// columnsOf are the inboxes and messages of rows, each a list of its own.
func columnsOf(messages sqldb.Rows) (inboxes, ids []string) {
	for _, m := range messages {
		inbox, id := m["inbox"].(string), m["message"].(string)
		if !slices.Contains(inboxes, inbox) {
			inboxes = append(inboxes, inbox)
		}
		ids = append(ids, id)
	}
	return inboxes, ids
}

// place decides where a mail row goes by the keys that are known. A row whose
// keys are not known stays unplaced.
func (l *ledger) place(m *mailRow, k known) {
	switch m.kind {
	case events.KindReceived:
		l.placeReceived(m, k.threads[address{m.inbox, m.thread}])
	case events.KindApproval:
		l.placeAbout(m, k.approvals[m.approval])
	default:
		l.placeAbout(m, k.sent[address{m.inbox, m.message}])
	}
}

func (l *ledger) placeReceived(m *mailRow, o owner) {
	w := l.workflows[o.workflow]
	switch {
	case m.message == "": // nothing to read it by
		m.place, m.reason = placeReview, ReasonUnreadable
	case w == nil: // not known, or moved after we locked: the matcher's
	case w.live(o.run):
		m.place, m.workflow, m.run, m.matchedBy = placeInput, w.id, w.run, matchedByThread
	default:
		m.place, m.reason = placeReview, ReasonLateReply
	}
}

// placeAbout places an event about a send of ours: a failure is an input of
// the workflow that sent it, once; all else is only noted. A delivery that does not
// say its state stays unplaced: the matcher reads it.
func (l *ledger) placeAbout(m *mailRow, s *sendRow) {
	if s == nil || m.kind == events.KindDelivery && m.delivery == client.DeliveryUnknown {
		return
	}
	w := l.workflows[s.workflow]
	if m.version > 0 && m.version <= s.version {
		m.place, m.reason = placeSettled, "stale"
		return
	}
	news := m.kind == events.KindApproval && s.state == sendHeld || m.delivery.Failed() && m.delivery != s.delivery
	if m.delivery != client.DeliveryUnknown {
		s.version, s.delivery = m.version, m.delivery // for the next of this transaction
	}
	switch {
	case news && w.live(s.run):
		m.place, m.workflow, m.run, m.matchedBy = placeInput, w.id, w.run, matchedBySend
	default:
		m.place, m.reason, m.workflow, m.run = placeSettled, "noted", s.workflow, s.run
	}
}

// insert writes the rows and lets the workflows of those that are new know. A
// second event of a known message is an alias of its row.
func (l *ledger) insert(ctx context.Context, rows []*mailRow, k known) error {
	var values sqldb.Rows
	for _, m := range rows {
		values = append(values, map[string]any{
			"event_id": m.eventID, "kind": m.kind, "inbox": m.inbox, "thread": m.thread, "message": m.message, "approval": m.approval,
			"delivery": m.delivery, "version": m.version, "place": m.place, "workflow": m.workflow, "run": m.run,
			"matched_by": m.matchedBy, "reason": m.reason,
		})
	}
	inserted := map[string]bool{}
	err := l.tx.Query(ctx, l.e.st.MailInsert, []any{l.e.cfg.Name, l.e.stream, values}, func(scan sqldb.Scan) error {
		var id string
		err := scan(&id)
		inserted[id] = true
		return err
	})
	if err != nil {
		return err
	}
	var aliases sqldb.Rows
	for _, m := range rows {
		if inserted[m.eventID] {
			if err := l.applied(ctx, m, k); err != nil {
				return err
			}
			continue
		}
		aliases = append(aliases, map[string]any{"event_id": m.eventID, "inbox": m.inbox, "thread": m.thread, "message": m.message})
	}
	if len(aliases) == 0 {
		return nil
	}
	_, err = l.tx.Exec(ctx, l.e.st.MailAlias, l.e.cfg.Name, l.e.stream, aliases)
	return err
}

// applied carries a new row's placing over to its workflow and its send.
func (l *ledger) applied(ctx context.Context, m *mailRow, k known) error {
	w := l.workflows[m.workflow]
	if w == nil {
		return nil
	}
	if m.delivery != "" && m.reason != "stale" {
		l.snapshot(m)
		l.record(w, "delivery", string(m.delivery)+" "+m.message)
	}
	if m.place == placeInput {
		w.state = w.arrive(1, l.now)
		l.record(w, "input", string(m.kind)+" "+m.eventID+" by "+m.matchedBy)
	}
	if s := k.approvals[m.approval]; m.kind == events.KindApproval && s != nil && s.state == sendHeld {
		return l.refuse(ctx, w, s, "a person refused it")
	}
	return nil
}

// refuse settles a send that will not happen; the input that tells the step,
// if that still runs, has arrived.
func (l *ledger) refuse(ctx context.Context, w *workflowRow, s *sendRow, why string) error {
	if w.live(s.run) {
		w.state = w.refused(s.step, l.now)
	}
	l.record(w, "refused", why)
	return l.settleSend(ctx, s, sendFailed, client.Outcome{Approval: s.approval}, why)
}
