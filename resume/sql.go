package resume

import "github.com/replywake/replywake/internal/sqldb"

// statements are every statement of the engine, once for both stores (see
// package sqldb for the marks). Locks are taken in the order of doc/locks:
// address, thread keys, workflow rows by ID, sends, mail.
type statements struct {
	now        string
	through    string
	lockShared string
	lockKeys   string

	workflow        string
	workflowsLock   string
	workflowLock    string
	workflowFenced  string
	workflowInsert  string
	workflowRestart string
	workflowSave    string
	workflowState   string
	workflowDue     string
	workflowBeat    string
	candidates      string
	list            string

	threadOwners string
	threadOwner  string
	threadInsert string
	threadMove   string
	threadDrop   string
	threadsOf    string
	threadMail   string

	mailInsert   string
	mailAlias    string
	mailTell     string
	mailPlace    string
	mailRetry    string
	mailUnplaced string
	mailPending  string
	mailConsume  string
	mailByEvent  string
	mailRead     string
	mailUndecide string
	mailDecide   string
	mailRelease  string
	mailReview   string
	mailInputs   string
	mailAbout    string

	sendInsert    string
	sendClaim     string
	sendLock      string
	sendSettle    string
	sendLater     string
	sendDrop      string
	sendDelivery  string
	sendByMessage string
	sendByAppr    string
	sendsHeld     string
	sendOpen      string
	sendBegan     string
	sendRecent    string
	sendOf        string

	historyInsert string
	historyOf     string

	pruneBodies     string
	pruneUnclaimed  string
	pruneHistory    string
	pruneWorkflows  string
	forgetLive      string
	forgetSends     string
	forgetMail      string
	forgetWorkflows string
}

const workflowColumns = `w.id, w.run, w.kind, w.inbox, w.counterparty, w.status, w.step, w.arrived, w.consumed, w.gen, w.due, w.deadline,
	w.wait, w.finish, w.kick, w.timed_out, w.timeouts, w.attempts, w.error, w.owner, w.state, w.created_at, w.updated_at, w.finished_at`

const mailColumns = `m.id, m.stream, m.event_id, m.kind, m.inbox, m.thread, m.message, m.approval, m.delivery, m.version, m.alias_of is not null,
	m.place, m.workflow, m.run, m.step, m.matched_by, m.proof, m.consumed_by is not null, m.reason, m.candidates, m.data, m.due, m.attempts,
	m.decided_by, m.decided_at, m.decision, m.target, m.arrived_at`

const sendColumns = `o.workflow, o.run, o.step, o.key, o.inbox, o.reply_to, o.body, o.hash, o.recipients, o.subject, o.state, o.attempts, o.first_attempt,
	o.message, o.thread, o.approval, o.version, o.delivery, o.created_at`

func newStatements(d sqldb.Dialect) statements {
	st := statements{
		now:        `select {now}`,
		through:    `select s.through from {s}streams as s where s.name = $1 and s.attached_at is not null`,
		lockShared: `select pg_advisory_xact_lock_shared(hashtextextended($1, 7))`,
		lockKeys:   `select pg_advisory_xact_lock(hashtextextended(l.value, 7)) from {list $1 text} as l`,

		workflow:       `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2`,
		workflowsLock:  `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id {in $2 text} order by w.id {lock}`,
		workflowLock:   `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2 {lock}`,
		workflowFenced: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id = $2 and w.run = $3 and w.gen = $4 and w.status = 'running' {lock}`,
		workflowInsert: `insert into {s}workflows as w (engine, id, run, kind, inbox, counterparty, status, state, created_at, updated_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, {now}, {now}) on conflict do nothing`,
		workflowRestart: `update {s}workflows set run = $3, kind = $4, inbox = $5, counterparty = $6, status = $7, state = $8, gen = gen + 1, owner = '',
			finished_at = null, created_at = {now}, updated_at = {now} where engine = $1 and id = $2`,
		workflowSave: `update {s}workflows as w set status = r.status, step = r.step, arrived = r.arrived, consumed = r.consumed, gen = r.gen,
			due = {time r.due}, deadline = {time r.deadline}, wait = r.wait, finish = r.finish, kick = r.kick, timed_out = r.timed_out,
			timeouts = r.timeouts, attempts = r.attempts, error = r.error, owner = r.owner, updated_at = {now},
			finished_at = case when r.terminal then coalesce(w.finished_at, {now}) else null end
			from {rows $2 id text, status text, step bigint, arrived bigint, consumed bigint, gen bigint, due bigint, deadline bigint, wait bigint,
				finish boolean, kick boolean, timed_out boolean, timeouts bigint, attempts bigint, error text, owner text, terminal boolean} as r
			where w.engine = $1 and w.id = r.id`,
		workflowState: `update {s}workflows set state = $3 where engine = $1 and id = $2`,
		workflowDue: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.due <= {now}
			order by w.due limit $2 {skip}`,
		workflowBeat: `update {s}workflows as w set due = {after $3} from {rows $2 id text, gen bigint} as r
			where w.engine = $1 and w.id = r.id and w.gen = r.gen and w.status = 'running' returning w.id, w.gen`,
		candidates: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.inbox = $2 and w.counterparty = $3
			and w.finished_at is null order by w.id {lock}`,
		list: `select ` + workflowColumns + ` from {s}workflows as w where w.engine = $1 and w.id > $2 and ($3 = '' or w.status = $3)
			order by w.id limit $4`,

		threadOwners: `select t.inbox, t.thread, t.workflow, t.run from {s}threads as t
			join {rows $3 inbox text, thread text} as r on t.inbox = r.inbox and t.thread = r.thread where t.engine = $1 and t.stream = $2`,
		threadOwner: `select t.workflow, t.run from {s}threads as t where t.engine = $1 and t.stream = $2 and t.inbox = $3 and t.thread = $4`,
		threadInsert: `insert into {s}threads (engine, stream, inbox, thread, workflow, run, matched_by, at)
			values ($1, $2, $3, $4, $5, $6, $7, {now}) on conflict do nothing`,
		threadMove: `update {s}threads set workflow = $5, run = $6, matched_by = $7, at = {now}
			where engine = $1 and stream = $2 and inbox = $3 and thread = $4`,
		threadDrop: `delete from {s}threads where engine = $1 and stream = $2 and inbox = $3 and thread = $4 and workflow = $5 and matched_by = 'person'`,
		threadsOf:  `select t.inbox, t.thread from {s}threads as t where t.engine = $1 and t.stream = $2 and t.workflow = $3 and t.run = $4 order by t.at, t.thread`,
		threadMail: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.stream = $2 and m.inbox = $3 and m.thread = $4
			and m.kind = 'received' and m.alias_of is null and (m.place = 'unplaced' or m.place = 'review' and m.decided_at is null
			and m.reason in ('no_candidate', 'several_candidates', 'late_reply', 'conflict')) order by m.id {lock}`,

		mailInsert: `insert into {s}mail (engine, stream, event_id, kind, inbox, thread, message, approval, delivery, version, place, workflow, run,
				step, matched_by, reason, due, arrived_at)
			select $1, $2, r.event_id, r.kind, r.inbox, r.thread, r.message, r.approval, r.delivery, r.version, r.place, r.workflow, r.run,
				r.step, r.matched_by, r.reason, {now}, {now}
			from {rows $3 event_id text, kind text, inbox text, thread text, message text, approval text, delivery text, version bigint,
				place text, workflow text, run text, step bigint, matched_by text, reason text} as r where true
			on conflict do nothing returning event_id`,
		mailAlias: `insert into {s}mail (engine, stream, event_id, kind, inbox, thread, message, alias_of, place, reason, due, arrived_at)
			select $1, $2, r.event_id, 'received', r.inbox, r.thread, r.message,
				(select min(o.id) from {s}mail as o where o.engine = $1 and o.stream = $2 and o.inbox = r.inbox and o.message = r.message
				and o.kind = 'received' and o.alias_of is null), 'settled', 'alias', {now}, {now}
			from {rows $3 event_id text, inbox text, thread text, message text} as r where true on conflict do nothing`,
		mailTell: `insert into {s}mail (engine, stream, event_id, kind, inbox, place, workflow, run, step, matched_by, reason, data, due, arrived_at)
			values ($1, $2, $3, $4, $5, 'input', $6, $7, $8, $9, $10, $11, {now}, {now}) on conflict do nothing`,
		mailPlace: `update {s}mail as m set place = r.place, workflow = r.workflow, run = r.run, step = r.step, matched_by = r.matched_by,
				proof = r.proof, reason = r.reason, candidates = r.candidates, due = coalesce({time r.due}, m.due)
			from {rows $1 id bigint, place text, workflow text, run text, step bigint, matched_by text, proof text, reason text,
				candidates text, due bigint} as r where m.id = r.id`,
		mailRetry: `update {s}mail set due = {after $2} where id = $1 and place in ('unplaced', 'input')`,
		mailUnplaced: `with c as materialized (select m.id from {s}mail as m where m.engine = $1 and m.place = 'unplaced' and m.due <= {now}
				order by m.due limit $2 {skip})
			update {s}mail as m set due = {after $3}, attempts = m.attempts + 1 from c where m.id = c.id returning ` + mailColumns,
		mailPending: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.place = 'input'
			and m.consumed_by is null order by m.id`,
		mailConsume: `update {s}mail as m set consumed_by = $1, position = r.position, proof = r.proof from {rows $2 id bigint, position bigint, proof text} as r
			where m.id = r.id and m.place = 'input' and m.consumed_by is null`,
		mailByEvent:  `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.event_id = $2 {lock}`,
		mailRead:     `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.event_id = $2`,
		mailDecide:   `update {s}mail set decision = $2, target = $3, decided_by = $4, decided_at = {now} where id = $1`,
		mailUndecide: `update {s}mail set decision = '', target = '', decided_by = '', decided_at = null where id = $1`,
		mailRelease: `update {s}mail set due = {now} where engine = $1 and workflow = $2 and run = $3
			and place = 'input' and consumed_by is null`,
		mailReview: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.place = 'review' and m.id > $2 order by m.id limit $3`,
		mailInputs: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.workflow = $2 and m.run = $3 and m.place = 'input'
			order by m.consumed_by is null, m.consumed_by, m.position, m.id`,
		mailAbout: `select ` + mailColumns + ` from {s}mail as m where m.engine = $1 and m.inbox = $2 and m.message = $3 and m.place = 'unplaced'
			and m.kind <> 'received' order by m.id {lock}`,

		sendInsert: `insert into {s}sends (engine, workflow, run, step, key, inbox, reply_to, body, hash, recipients, subject, answering, state, due, created_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'planned', {now}, {now})`,
		sendClaim: `with c as materialized (select o.engine, o.workflow, o.run, o.step from {s}sends as o where o.engine = $1 and o.due <= {now}
				order by o.due limit $2 {skip})
			update {s}sends as o set attempts = o.attempts + 1, first_attempt = coalesce(o.first_attempt, {now}), due = {after $3}
			from c where o.engine = c.engine and o.workflow = c.workflow and o.run = c.run and o.step = c.step returning ` + sendColumns,
		sendLock: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 and o.step = $4 {lock}`,
		sendSettle: `update {s}sends set state = $5, message = $6, thread = $7, approval = $8, error = $9, due = null,
			settled_at = case when $5 = 'held' then null else {now} end where engine = $1 and workflow = $2 and run = $3 and step = $4`,
		sendLater: `update {s}sends set due = {after $6}, error = $7 where engine = $1 and workflow = $2 and run = $3 and step = $4
			and attempts = $5 and state = 'planned'`,
		sendDrop: `update {s}sends set state = 'dropped', due = null, settled_at = {now} where engine = $1 and workflow = $2 and run = $3
			and state = 'planned' and first_attempt is null`,
		sendDelivery: `update {s}sends as o set delivery = r.delivery, version = r.version
			from {rows $2 inbox text, message text, delivery text, version bigint} as r
			where o.engine = $1 and o.inbox = r.inbox and o.message = r.message and o.version <= r.version`,
		sendByMessage: `select ` + sendColumns + ` from {s}sends as o join {rows $2 inbox text, message text} as r
			on o.inbox = r.inbox and o.message = r.message where o.engine = $1`,
		sendByAppr: `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.approval {in $2 text} and o.approval <> ''`,
		sendsHeld:  `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.inbox = $2 and o.state = 'held' order by o.workflow, o.step`,
		sendOpen: `select count(*) from {s}sends as o where o.engine = $1 and o.inbox = $2 and o.state = 'planned'
			and o.first_attempt is not null and o.first_attempt <= $3`,
		sendBegan: `select count(*) from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3
			and o.first_attempt is not null and o.first_attempt <= $4`,
		sendRecent: `select count(*) from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 and o.answering and o.created_at > {after $4}`,
		sendOf:     `select ` + sendColumns + ` from {s}sends as o where o.engine = $1 and o.workflow = $2 and o.run = $3 order by o.step`,

		historyInsert: `insert into {s}history (engine, workflow, run, at, what, step, detail)
			select $1, r.workflow, r.run, {now}, r.what, r.step, r.detail
			from {rows $2 workflow text, run text, what text, step bigint, detail text} as r where true`,
		historyOf: `select at, what, step, detail from {s}history where engine = $1 and workflow = $2 and run = $3 order by id`,

		pruneBodies: `update {s}sends set body = null where engine = $1 and state in ('accepted', 'failed', 'dropped') and body is not null
			and created_at < {after $2}`,
		pruneUnclaimed: `update {s}mail set place = 'settled', reason = 'expired' where id in (select m.id from {s}mail as m where m.engine = $1
			and m.place = 'review' and m.candidates = '[]' and m.arrived_at < {after $2} order by m.arrived_at limit $3)`,
		pruneHistory: `delete from {s}history where id in (select h.id from {s}history as h join {s}workflows as w
			on w.engine = h.engine and w.id = h.workflow where h.engine = $1 and w.finished_at < {after $2} limit $3)`,
		pruneWorkflows: `delete from {s}workflows where engine = $1 and id in (select w.id from {s}workflows as w where w.engine = $1
			and w.finished_at < {after $2} and not exists (select 1 from {s}history as h where h.engine = w.engine and h.workflow = w.id)
			order by w.finished_at limit $3)`,

		forgetLive: `select count(*) from {s}workflows as w where w.engine = $1 and w.counterparty = $2 and w.finished_at is null`,
		forgetSends: `update {s}sends set body = null, subject = '', recipients = '[]' where engine = $1 and settled_at is not null and workflow in
			(select w.id from {s}workflows as w where w.engine = $1 and w.counterparty = $2)`,
		forgetMail: `update {s}mail set data = null where engine = $1 and workflow in
			(select w.id from {s}workflows as w where w.engine = $1 and w.counterparty = $2)`,
		forgetWorkflows: `update {s}workflows set counterparty = '', state = null, error = '' where engine = $1 and counterparty = $2`,
	}
	if d.SQLite { // one writer: every transaction of ours holds the lock of all keys
		st.lockShared, st.lockKeys = "", ""
	}
	d.RenderAll(&st)
	return st
}
