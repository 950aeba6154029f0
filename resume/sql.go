package resume

import (
	"fmt"
	"strings"

	"github.com/replywake/replywake/internal/sqldb"
)

// statements are every statement of the engine, once for both stores (see
// package sqldb for the marks). Locks are taken in one order: address, thread
// keys, workflow rows by ID, sends, mail.
//
// Where rows of a parameter meet a table, the table's keys are named once more
// with {in}, or looked up row by row: Postgres takes any such parameter for a
// hundred rows and would read a middling table whole.
type statements struct {
	Now          string
	EngineTake   string
	EngineStream string
	Through      string

	Backlog       string
	WorkflowIsDue string
	SendIsDue     string
	MailIsDue     string

	LockShared string
	LockKeys   string

	Workflow        string
	WorkflowsLock   string
	WorkflowLock    string
	WorkflowFenced  string
	WorkflowInsert  string
	WorkflowRestart string
	WorkflowSave    string
	WorkflowState   string
	WorkflowDue     string
	WorkflowBeat    string
	Candidates      string
	List            string

	ThreadOwners string
	ThreadOwner  string
	ThreadInsert string
	ThreadMove   string
	ThreadBack   string
	ThreadDrop   string
	ThreadsOf    string
	ThreadMail   string

	MailInsert   string
	MailAlias    string
	MailTell     string
	MailPlace    string
	MailRetry    string
	MailUnread   string
	MailWait     string
	MailUnplaced string
	MailPending  string
	MailConsume  string
	MailByEvent  string
	MailRead     string
	MailUndecide string
	MailDecide   string
	MailRelease  string
	MailReview   string
	MailSettled  string
	MailStill    string
	MailAlong    string
	MailInputs   string
	MailAbout    string
	MailApproval string
	MailCanceled string

	SendInsert    string
	SendClaim     string
	SendLock      string
	SendSettle    string
	SendLater     string
	SendDrop      string
	SendBack      string
	SendUnclaim   string
	SendDelivery  string
	SendByMessage string
	SendByAppr    string
	SendsHeld     string
	SendOpen      string
	SendBegan     string
	SendDoubt     string
	SendRecent    string
	SendsBegun    string
	SendOf        string
	SendsNameless string
	SendName      string

	HistoryInsert string
	HistoryOf     string
	HistoryEvent  string

	PruneBodies     string
	PruneUnclaimed  string
	PruneHistory    string
	PruneSignals    string
	PruneSends      string
	PruneDecisions  string
	PruneWorkflows  string
	ForgetLive      string
	ForgetSends     string
	ForgetMail      string
	ForgetRuns      string
	ForgetHistory   string
	ForgetDecisions string
	ForgetWorkflows string
}

const workflowColumns = `w.id, w.run, w.kind, w.inbox, w.counterparty, w.status, w.step, w.arrived, w.consumed, w.gen, w.due, w.deadline,
	w.wait, w.finish, w.kick, w.timed_out, w.timeouts, w.attempts, w.stalls, w.begun, w.error, w.owner, w.state, w.created_at, w.updated_at, w.finished_at`

const mailColumns = `m.id, m.stream, m.event_id, m.kind, m.inbox, m.thread, m.message, m.approval, m.delivery, m.version, m.alias_of is not null,
	m.place, m.workflow, m.run, m.matched_by, m.proof, m.consumed_by is not null, m.reason, m.candidates, m.data, m.due, m.attempts,
	m.unread, m.unread_since, m.decided_by, m.decided_at, m.decision, m.target, m.arrived_at`

const sendColumns = `o.workflow, o.run, o.step, o.key, o.inbox, o.reply_to, o.body, o.hash, o.recipients, o.subject, o.state, o.attempts, o.stalls, o.first_attempt,
	o.message, o.thread, o.approval, o.version, o.delivery, o.error, o.created_at, o.settled_at`

// justBound is a thread that a person gave to $5 and may take back with mail $6:
// the run has taken none of its mail, and no other bind stands for it.
const justBound = `t.engine = $1 and t.stream = $2 and t.inbox = $3 and t.thread = $4 and t.workflow = $5 and t.matched_by = 'person'
	and not exists (select 1 from {s}mail as m where m.engine = $1 and m.stream = $2 and m.inbox = $3 and m.thread = $4 and m.workflow = $5
	and m.run = t.run and m.place = 'input' and m.id <> $6 and (m.consumed_by is not null or m.decision = 'bind'))`

// prunable are finished workflows that nothing needs any more, the oldest
// first. A send without an outcome needs its workflow: to be told it.
const prunable = `select w.id from {s}workflows as w where w.engine = $1 and w.finished_at < {after $2}
	and not exists (select 1 from {s}sends as o where o.engine = w.engine and o.workflow = w.id and o.state in ('planned', 'held')) %s
	order by w.finished_at limit $3`

// keptFrom is from when on what belongs to a run is kept for $2: since the
// workflow finished; while it has not, so that it is looked at again after $4
// more. It is null if nothing keeps it: the workflow is gone, or started anew.
func keptFrom(workflow, run string) string {
	return `(select coalesce(w.finished_at, {after $4}) from {s}workflows as w where w.engine = $1 and w.id = ` + workflow + ` and w.run = ` + run + `
		and (w.finished_at is null or w.finished_at >= {after $2}))`
}

func newStatements(d sqldb.Dialect) statements {
	candidates := `jsonb_array_elements_text(m.candidates::jsonb) as c(value)`
	if d.SQLite {
		candidates = `json_each(m.candidates) as c`
	}
	st := statements{
		Now:          `select {clock}`,
		EngineTake:   `insert into {s}engines (name, stream) values ($1, $2) on conflict do nothing`,
		EngineStream: `select stream from {s}engines where name = $1`,
		Through:      `select s.through from {s}streams as s where s.name = $1 and s.attached_at is not null`,
		Backlog: `select {now}, (select min(w.due) from {s}workflows as w where w.engine = $1 and w.due is not null),
			(select count(*) from {s}mail as m where m.engine = $1 and m.place = 'review'),
			(select min(m.arrived_at) from {s}mail as m where m.engine = $1 and m.place = 'review'),
			(select count(*) from {s}mail as m where m.engine = $1 and m.place = 'unplaced'),
			(select min(m.arrived_at) from {s}mail as m where m.engine = $1 and m.place = 'unplaced'),
			(select count(*) from {s}workflows as w where w.engine = $1 and w.status = 'needs_review')`,
		WorkflowIsDue: `select count(*) from (select 1 from {s}workflows where engine = $1 and due <= {now} limit 1) as w`,
		SendIsDue:     `select count(*) from (select 1 from {s}sends where engine = $1 and due <= {now} limit 1) as o`,
		MailIsDue:     `select count(*) from (select 1 from {s}mail where engine = $1 and place = 'unplaced' and due <= {now} limit 1) as m`,
		LockShared:    `select pg_advisory_xact_lock_shared(hashtextextended($1, 7))`,
		LockKeys:      `select pg_advisory_xact_lock(hashtextextended(l.value, 7)) from {list $1 text} as l`,

		Workflow:       `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2`,
		WorkflowsLock:  `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id {in $2 text} order by w.id {lock}`,
		WorkflowLock:   `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2 {lock}`,
		WorkflowFenced: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2 and w.run = $3 and w.gen = $4 and w.status = 'running' {lock}`,
		WorkflowInsert: `insert into {s}workflows as w (engine, id, run, kind, inbox, counterparty, status, state, created_at, updated_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, {now}, {now}) on conflict do nothing`,
		WorkflowRestart: `update {s}workflows set run = $3, kind = $4, inbox = $5, counterparty = $6, status = $7, state = $8, gen = gen + 1, owner = '',
			finished_at = null, created_at = {now}, updated_at = {now} where engine = $1 and id = $2`,
		WorkflowSave: `update {s}workflows as w set status = r.status, step = r.step, arrived = r.arrived, consumed = r.consumed, gen = r.gen,
			due = {time r.due}, deadline = {time r.deadline}, wait = r.wait, finish = r.finish, kick = r.kick, timed_out = r.timed_out,
			timeouts = r.timeouts, attempts = r.attempts, stalls = r.stalls, begun = r.begun, error = r.error, owner = r.owner, updated_at = {clock},
			finished_at = case when r.terminal then coalesce(w.finished_at, {clock}) else null end
			from {rows $2 id text, status text, step bigint, arrived bigint, consumed bigint, gen bigint, due bigint, deadline bigint, wait bigint,
				finish boolean, kick boolean, timed_out boolean, timeouts bigint, attempts bigint, stalls bigint, begun boolean, error text, owner text, terminal boolean} as r
			where w.engine = $1 and w.id = r.id and w.id {in $3 text}`,
		WorkflowState: `update {s}workflows set state = $3 where engine = $1 and id = $2`,
		WorkflowDue: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.due <= {now}
			order by w.due limit $2 {skip}`,
		WorkflowBeat: `update {s}workflows as w set due = {after $3} from {rows $2 held text, held_gen bigint} as r
			where w.engine = $1 and w.id = r.held and w.id {in $4 text} and w.gen = r.held_gen and w.status = 'running' returning id, gen`,
		Candidates: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.inbox = $2 and w.counterparty = $3
			and (w.finished_at is null or w.finished_at > $4) order by w.id {lock}`,
		List: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id > $2 and ($3 = '' or w.status = $3)
			order by w.id limit $4`,

		ThreadOwners: `select r.inbox, r.thread,
				coalesce((select t.workflow from {s}threads as t where t.engine = $1 and t.stream = $2 and t.inbox = r.inbox and t.thread = r.thread), ''),
				coalesce((select t.run from {s}threads as t where t.engine = $1 and t.stream = $2 and t.inbox = r.inbox and t.thread = r.thread), '')
			from {rows $3 inbox text, thread text} as r`,
		ThreadOwner: `select t.workflow, t.run from {s}threads as t where t.engine = $1 and t.stream = $2 and t.inbox = $3 and t.thread = $4`,
		ThreadInsert: `insert into {s}threads (engine, stream, inbox, thread, workflow, run, matched_by, at)
			values ($1, $2, $3, $4, $5, $6, $7, {now}) on conflict do nothing`,
		ThreadMove: `update {s}threads set workflow = $5, run = $6, matched_by = $7, at = {now},
				earlier_workflow = workflow, earlier_run = run, earlier_by = matched_by
			where engine = $1 and stream = $2 and inbox = $3 and thread = $4`,
		ThreadBack: `update {s}threads as t set workflow = earlier_workflow, run = earlier_run, matched_by = earlier_by, at = {now},
				earlier_workflow = '', earlier_run = '', earlier_by = ''
			where ` + justBound + ` and t.earlier_workflow <> ''`,
		ThreadDrop: `delete from {s}threads as t where ` + justBound + ` and t.earlier_workflow = ''`,
		ThreadsOf:  `select t.inbox, t.thread from {s}threads as t where t.engine = $1 and t.stream = $2 and t.workflow = $3 and t.run = $4 order by t.at, t.thread`,
		ThreadMail: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.stream = $2 and m.inbox = $3 and m.thread = $4
			and m.kind = 'received' and m.alias_of is null and m.place in ('unplaced', 'review') and (m.place = 'unplaced' or m.decided_at is null
			and m.reason in ('no_candidate', 'several_candidates', 'late_reply', 'conflict')) order by m.id {lock}`,

		MailInsert: `insert into {s}mail (engine, stream, event_id, kind, inbox, thread, message, approval, delivery, version, place, workflow, run,
				matched_by, reason, due, arrived_at)
			select $1, $2, r.event_id, r.kind, r.inbox, r.thread, r.message, r.approval, r.delivery, r.version, r.place, r.workflow, r.run,
				r.matched_by, r.reason, {now}, {now}
			from {rows $3 event_id text, kind text, inbox text, thread text, message text, approval text, delivery text, version bigint,
				place text, workflow text, run text, matched_by text, reason text} as r where true
			on conflict do nothing returning event_id`,
		MailAlias: `insert into {s}mail (engine, stream, event_id, kind, inbox, thread, message, alias_of, place, reason, due, arrived_at)
			select $1, $2, r.event_id, 'received', r.inbox, r.thread, r.message,
				(select min(o.id) from {s}mail as o where o.engine = $1 and o.stream = $2 and o.inbox = r.inbox and o.message = r.message
				and o.kind = 'received' and o.message <> '' and o.alias_of is null), 'settled', 'alias', {now}, {now}
			from {rows $3 event_id text, inbox text, thread text, message text} as r where true on conflict do nothing`,
		MailTell: `insert into {s}mail (engine, stream, event_id, kind, inbox, place, workflow, run, matched_by, reason, data, due, arrived_at)
			values ($1, $2, $3, $4, $5, 'input', $6, $7, $8, $9, $10, {now}, {now}) on conflict do nothing`,
		MailPlace: `update {s}mail as m set place = r.place, workflow = r.workflow, run = r.run, matched_by = r.matched_by,
				proof = r.proof, reason = r.reason, candidates = r.candidates, delivery = r.delivery, due = coalesce({time r.due}, m.due),
				attempts = case when m.place = 'unplaced' and r.place <> 'unplaced' then 0 else m.attempts end,
				unread = case when m.place = r.place then m.unread else 0 end,
				unread_since = case when m.place = r.place then m.unread_since end
			from {rows $1 id bigint, place text, workflow text, run text, matched_by text, proof text, reason text,
				candidates text, delivery text, due bigint} as r where m.id = r.id and m.id {in $2 bigint}`,
		MailWait: `update {s}mail set due = {after $2}, attempts = attempts - 1 where id = $1 and place = 'unplaced'`,
		MailUnread: `update {s}mail set due = {after $2}, unread = unread + 1, unread_since = coalesce(unread_since, {now})
			where id = $1 and place in ('unplaced', 'input') and consumed_by is null`,
		MailRetry: `update {s}mail set due = {after $2} where id = $1 and place in ('unplaced', 'input')`,
		MailUnplaced: `with c as materialized (select m.id as found from {s}mail as m where m.engine = $1 and m.place = 'unplaced' and m.due <= {now}
				order by m.due limit $2 {skip})
			update {s}mail as m set due = {after $3}, attempts = m.attempts + 1 from c where m.id = c.found returning ` + returning(mailColumns),
		MailPending: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.place = 'input'
			and m.consumed_by is null order by m.id`,
		MailConsume: `update {s}mail as m set consumed_by = $1, position = r.position, proof = r.proof from {rows $2 id bigint, position bigint, proof text} as r
			where m.id = r.id and m.id {in $3 bigint} and m.place = 'input' and m.consumed_by is null and m.workflow = $4 and m.run = $5`,
		MailByEvent: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.event_id = $2 {lock}`,
		MailRead: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1
			and m.id = (select coalesce(a.alias_of, a.id) from {s}mail as a where a.engine = $1 and a.event_id = $2)`,
		MailDecide:   `update {s}mail set decision = $2, target = $3, decided_by = $4, decided_at = {now} where id = $1`,
		MailUndecide: `update {s}mail set decision = '', target = '', decided_by = '', decided_at = null where id = $1`,
		MailRelease: `update {s}mail set due = {now} where engine = $1 and workflow = $2 and run = $3
			and place = 'input' and consumed_by is null`,
		MailAlong: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.inbox = $4 and m.thread = $5
			and m.place = 'input' and m.consumed_by is null and m.matched_by in ('person', 'thread') and m.decision = '' order by m.id {lock}`,
		MailStill: `select m.id from {s}mail as m where m.id {in $1 bigint} and m.place = 'input' and m.consumed_by is null and m.workflow = $2 and m.run = $3
			order by m.id {lock}`,
		MailReview: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.place = 'review' and m.id > $2 order by m.id limit $3`,
		MailSettled: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.place = 'settled' and m.kind = 'received'
			and m.alias_of is null and m.decision = '' and m.id < $2 order by m.id desc limit $3`,
		MailInputs: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.place = 'input'
			order by m.consumed_by is null, m.consumed_by, m.position, m.id`,
		MailAbout: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.inbox = $2 and m.message = $3 and m.message <> ''
			and m.kind <> 'received' and (m.place = 'unplaced' or m.reason = 'not_ours') order by m.id {lock}`,
		MailCanceled: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.place = 'settled'
			and m.reason = 'canceled' order by m.id {lock}`,
		MailApproval: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.approval = $2 and m.approval <> ''
			and m.kind = 'approval' and (m.place = 'unplaced' or m.reason = 'not_ours') order by m.id {lock}`,

		SendInsert: `insert into {s}sends (engine, workflow, run, step, key, inbox, reply_to, body, hash, counterparty, recipients, subject, answering, state, due, created_at, kept_from)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'planned', {now}, {now}, {now})`,
		SendClaim: `with c as materialized (select o.workflow as c_workflow, o.run as c_run, o.step as c_step from {s}sends as o where o.engine = $1 and o.due <= {now}
				order by o.due limit $2 {skip})
			update {s}sends as o set attempts = o.attempts + 1, first_attempt = coalesce(o.first_attempt, {clock}), due = {after $3}
			from c where o.engine = $1 and o.workflow = c_workflow and o.run = c_run and o.step = c_step returning ` + returning(sendColumns),
		SendLock: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 and o.step = $4 {lock}`,
		SendSettle: `update {s}sends set state = $5, message = $6, thread = $7, approval = $8, error = $9, due = null,
			settled_at = case when $5 = 'held' then null else {now} end where engine = $1 and workflow = $2 and run = $3 and step = $4
			and state in ('planned', 'held')`,
		SendLater: `update {s}sends set due = {after $6}, error = $7, stalls = $8 where engine = $1 and workflow = $2 and run = $3 and step = $4
			and attempts = $5 and state = 'planned'`,
		SendBack: `update {s}sends set due = {now} where engine = $1 and workflow = $2 and run = $3 and step = $4 and attempts = $5 and state = 'planned'`,
		SendUnclaim: `update {s}sends set due = {now}, attempts = attempts - 1, first_attempt = case when attempts > 1 then first_attempt end
			where engine = $1 and workflow = $2 and run = $3 and step = $4 and attempts = $5 and state = 'planned'`,
		SendDrop: `update {s}sends set state = 'dropped', due = null, settled_at = {now} where engine = $1 and workflow = $2 and run = $3
			and state = 'planned' and first_attempt is null`,
		SendDelivery: `update {s}sends as o set delivery = r.delivery, version = r.version
			from {rows $2 inbox text, message text, delivery text, version bigint} as r
			where o.engine = $1 and o.inbox = r.inbox and o.message = r.message and o.message {in $3 text} and o.message <> ''
			and o.inbox {in $4 text} and o.version <= r.version`,
		SendByMessage: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.inbox {in $2 text} and o.message {in $3 text}
			and o.message <> ''`,
		SendByAppr: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.approval {in $2 text} and o.approval <> ''`,
		SendsHeld: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.inbox = $2 and o.state = 'held' and o.state in ('planned', 'held')
			order by o.workflow, o.step`,
		SendOpen: `select count(*) from {s}sends as o where o.engine = $1 and ($2 = '' or o.inbox = $2) and o.state = 'planned' and o.state in ('planned', 'held')
			and o.first_attempt is not null and o.first_attempt <= $3`,
		SendDoubt: `select (select count(*) from {s}sends as o where o.engine = $1 and ($2 = '' or o.inbox = $2) and o.state = 'held' and o.state in ('planned', 'held'))
			+ (select count(*) from {s}sends as o where o.engine = $1 and ($2 = '' or o.inbox = $2) and o.state = 'accepted' and o.message = '')`,
		SendBegan: `select count(*) from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3
			and o.first_attempt is not null and o.first_attempt <= $4`,
		SendsBegun: `select o.step, o.first_attempt from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3
			and o.first_attempt is not null order by o.step`,
		SendRecent: `select count(*) from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 and o.answering and o.created_at > {after $4}`,
		SendOf:     `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 order by o.step`,

		SendsNameless: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.inbox = $2 and o.thread = $3 and o.state = 'accepted'
			and o.message = '' order by o.workflow, o.step`,
		SendName: `update {s}sends set message = $5 where engine = $1 and workflow = $2 and run = $3 and step = $4 and message = ''`,

		HistoryInsert: `insert into {s}history (engine, workflow, run, event_id, at, what, step, detail)
			select $1, r.workflow, r.run, r.event_id, {now}, r.what, r.step, r.detail
			from {rows $2 workflow text, run text, event_id text, what text, step bigint, detail text} as r where true`,
		HistoryEvent: `select at, what, step, detail from {s}history where engine = $1 and event_id = $2 and event_id <> '' order by id`,
		HistoryOf:    `select at, what, step, detail from {s}history where engine = $1 and workflow = $2 and run = $3 order by id`,

		PruneBodies: `with c as materialized (select o.workflow as c_workflow, o.run as c_run, o.step as c_step from {s}sends as o
				where o.engine = $1 and o.body is not null and o.state in ('accepted', 'failed', 'dropped') and o.created_at < {after $2}
				order by o.created_at limit $3 {skip})
			update {s}sends as o set body = null from c where o.engine = $1 and o.workflow = c_workflow and o.run = c_run and o.step = c_step`,
		PruneUnclaimed: `with c as materialized (select m.id as c_id from {s}mail as m where m.engine = $1 and m.place = 'review' and m.candidates = '[]'
				and m.arrived_at < {after $2} order by m.arrived_at limit $3 {skip})
			update {s}mail set place = 'settled', reason = 'expired' where id in (select c_id from c) and place = 'review'`,
		PruneSends: `with c as materialized (select o.workflow as c_workflow, o.run as c_run, o.step as c_step, ` + keptFrom("o.workflow", "o.run") + ` as c_from
				from {s}sends as o where o.engine = $1 and o.counterparty <> '' and o.state not in ('planned', 'held') and o.kept_from < {after $2}
				order by o.kept_from limit $3 {skip})
			update {s}sends as o set kept_from = coalesce(c_from, o.kept_from), body = case when c_from is null then null else o.body end,
				subject = case when c_from is null then '' else o.subject end, recipients = case when c_from is null then '[]' else o.recipients end,
				counterparty = case when c_from is null then '' else o.counterparty end
			from c where o.engine = $1 and o.workflow = c_workflow and o.run = c_run and o.step = c_step`,
		PruneSignals: `with c as materialized (select m.id as c_id, ` + keptFrom("m.workflow", "m.run") + ` as c_from from {s}mail as m
				where m.engine = $1 and m.data is not null and (m.place <> 'input' or m.consumed_by is not null) and m.due < {after $2}
				order by m.due limit $3 {skip})
			update {s}mail as m set due = coalesce(c_from, m.due), data = case when c_from is null then null else m.data end from c where m.id = c_id`,
		PruneDecisions: `with c as materialized (select h.id as c_id from {s}history as h where h.engine = $1 and h.workflow = '' and h.at < {after $2}
				order by h.at limit $3 {skip})
			delete from {s}history where id in (select c_id from c)`,
		PruneHistory: `with c as materialized (select h.id as c_id from (` + fmt.Sprintf(prunable, "") + `) as w
				join {s}history as h on h.engine = $1 and h.workflow = w.id limit $3)
			delete from {s}history where id in (select c_id from c)`,
		PruneWorkflows: `with c as materialized (` + fmt.Sprintf(prunable, "and not exists (select 1 from {s}history as h where h.engine = w.engine and h.workflow = w.id)") + ` {skip})
			delete from {s}workflows where engine = $1 and id in (select id from c)`,

		ForgetLive: `select (select count(*) from {s}workflows as w where w.engine = $1 and w.counterparty = $2 and w.finished_at is null)
			+ (select count(*) from {s}sends as o where o.engine = $1 and o.counterparty = $2 and o.state = 'planned')`,
		ForgetSends: `update {s}sends set body = null, subject = '', recipients = '[]', counterparty = '' where engine = $1 and counterparty = $2
			and state <> 'planned'`,
		ForgetRuns: `select w.id, w.run from {s}workflows as w where w.engine = $1 and w.counterparty = $2
			union select o.workflow, o.run from {s}sends as o where o.engine = $1 and o.counterparty = $2`,
		ForgetMail:    `update {s}mail set data = null where engine = $1 and data is not null and workflow {in $2 text} and run {in $3 text}`,
		ForgetHistory: `update {s}history set detail = '' where engine = $1 and detail <> '' and workflow {in $2 text} and run {in $3 text}`,
		ForgetDecisions: `update {s}history set detail = '' where detail <> '' and id in (select h.id from {s}history as h
			join {s}mail as m on m.engine = h.engine and m.stream = $2 and m.event_id = h.event_id where h.engine = $1 and h.event_id <> '' and (m.run {in $4 text}
			or exists (select 1 from {s}threads as t where t.engine = $1 and t.stream = $2 and t.inbox = m.inbox and t.thread = m.thread and t.run {in $4 text})
			or exists (select 1 from ` + candidates + ` where c.value {in $3 text})))`,
		ForgetWorkflows: `update {s}workflows set counterparty = '', state = null, error = '' where engine = $1 and counterparty = $2
			and finished_at is not null`,
	}
	if d.SQLite { // one writer: every transaction of ours holds the lock of all keys
		st.LockShared, st.LockKeys = "", ""
	}
	d.RenderAll(&st)
	return st
}

// returning are the columns in a RETURNING clause, where SQLite takes no
// alias.
func returning(columns string) string {
	return strings.NewReplacer("m.", "", "o.", "").Replace(columns)
}
