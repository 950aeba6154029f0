package dedupe

import "github.com/replywake/replywake/internal/sqldb"

// statements are all of them, with the marks of package sqldb. Where the two
// databases need different words there is a second constant below.
type statements struct {
	Claim    string // returns what is fresh and what is skipped
	ClaimAll string // Postgres only: Claim where nothing has a sequence
	Remember string // SQLite only: the writing half of Claim
	Check    string
	Unclaim  string

	Enrol      string
	Identity   string
	Identify   string
	Position   string
	Through    string
	MoveCursor string
	Attach     string
	Settled    string
	Reached    string
	Lost       string
	Lease      string
	Release    string
	Unreadable string

	Park    string
	Due     string
	Wait    string // Postgres only
	Parked  string
	Unpark  string
	Failed  string
	Revive  string
	IsGone  string
	Discard string
	List    string
	Status  string

	Counts  string
	Swept   string
	Unswept string
	Floors  string
	Known   string

	PruneLimits     string
	PruneSwept      string
	PruneFloors     string
	PrunePushed     string
	PruneIDs        string
	PruneUnswept    string
	PruneUnreadable string
	PruneContent    string
	PruneDiscarded  string
}

func render(d sqldb.Dialect) statements {
	st := texts
	if d.SQLite {
		st.Claim, st.Remember = claimLite, rememberLite
	}
	d.RenderAll(&st)
	return st
}

// handled is whether an event of a sweep lies where everything has been handled
// or is not to be: in history, between what a stretch of its inbox was forgotten
// from and until, or in the time whose pushes are. $3 is Batch.History.
const handled = `r.sequence > 0 and (not $3 and r.sequence <= coalesce(s.attached, 0)
	or exists (select 1 from {s}floors f where f.stream = $1 and f.inbox = r.inbox
		and (r.sequence between f.swept_from and f.swept_until
			or {time r.occurred} between f.pushed_from and f.pushed_until)))`

// inTurn is whether a sweep meets an event on its way up from the settled
// position, so that whatever lies between the two is met too. $4 is whether it
// is a push.
const inTurn = `not ($3 or $4) and r.sequence > coalesce(s.settled, 0)`

const ofStream = ` left join {s}streams s on s.name = $1`

const rowsAsked = `{rows $2 event_id text, sequence bigint, inbox text, occurred bigint} as r` + ofStream

// onKnown fills in a known event's sequence. A row with nothing to fill in is
// written once an hour ($5) only.
const onKnown = ` on conflict (stream, event_id) do update set
	sequence = coalesce(k.sequence, excluded.sequence),
	inbox = case when excluded.sequence is null then k.inbox else excluded.inbox end,
	swept = k.swept or excluded.swept,
	pushed = k.pushed or excluded.pushed,
	last_seen = excluded.last_seen
	where (k.sequence is null and excluded.sequence is not null) or (excluded.swept and not k.swept)
		or (excluded.pushed and not k.pushed) or k.last_seen < {after $5}`

// claimPostgres is one statement for a whole batch. xmax is 0 in a row that was
// inserted, and ours in one that was updated; a known row that needs no update
// is locked and not returned. The lock timeout holds for the transaction and is
// set here to save a round trip; the CTE is read before the insert begins.
const claimPostgres = `with setting as materialized (select set_config('lock_timeout', $6, true)),
asked as (
	select r.event_id, r.sequence, r.inbox, ` + inTurn + ` as swept, ` + handled + ` as skip
	from setting cross join ` + rowsAsked + `
), claimed as (
	insert into {s}seen as k (stream, event_id, sequence, inbox, swept, pushed, first_seen, last_seen)
	select $1, event_id, nullif(sequence, 0), inbox, swept, $4::boolean, now(), now() from asked
	where not skip order by event_id collate "C"` + onKnown + `
	returning event_id, xmax = 0 as fresh
)
select event_id, true from asked where skip
union all select event_id, false from claimed where fresh`

// claimAllPostgres is claimPostgres where nothing can be skipped, as in every
// push: a third of its work.
const claimAllPostgres = `with setting as materialized (select set_config('lock_timeout', $6, true))
	insert into {s}seen as k (stream, event_id, inbox, pushed, first_seen, last_seen)
	select $1, r.event_id, r.inbox, $4::boolean, now(), now()
	from setting cross join unnest($2::text[], $3::text[]) as r(event_id, inbox)
	order by r.event_id collate "C"` + onKnown + `
	returning event_id, xmax = 0`

// claimLite reads first: the write lock is held, so nothing can change before
// rememberLite has written.
const claimLite = `select r.event_id, ` + handled + ` as skip from ` + rowsAsked + `
	left join {s}seen k on k.stream = $1 and k.event_id = r.event_id
	where k.event_id is null or ` + handled

const rememberLite = `insert into {s}seen as k (stream, event_id, sequence, inbox, swept, pushed, first_seen, last_seen)
	select $1, r.event_id, nullif(r.sequence, 0), r.inbox, ` + inTurn + `, $4, {now}, {now}
	from {rows $2 event_id text, sequence bigint, inbox text} as r` + ofStream + ` where true` + onKnown

var texts = statements{
	Claim:    claimPostgres,
	ClaimAll: claimAllPostgres,

	// Check runs after the claim, so that it sees what was committed while the
	// claim waited: an ID may have been parked, or pruned meanwhile.
	Check: `select r.event_id, p.event_id is not null and p.failed_at is null, ` + handled + `
		from ` + rowsAsked + ` left join {s}parked p on p.stream = $1 and p.event_id = r.event_id
		where (p.event_id is not null and p.failed_at is null) or ` + handled,
	Unclaim: `delete from {s}seen where stream = $1 and event_id {in $2 text}`,

	Enrol: `insert into {s}streams (name, life, origin, environment, credential, created_at)
		values ($1, $5, $2, $3, $4, {now}) on conflict (name) do nothing`,
	Identity: `select origin, environment, credential from {s}streams where name = $1 {lock}`,
	Identify: `update {s}streams set origin = $2, environment = $3, credential = $4,
		credential_changed_at = case when $5 then {now} else credential_changed_at end where name = $1`,

	Position: `select attached_at is not null, cursor, settled, attached, through, {now}, origin, environment,
		lost_at, lost_cursor, lost_oldest, credential_changed_at from {s}streams where name = $1`,
	Through: `select attached_at is not null, through, {now} from {s}streams where name = $1`,
	MoveCursor: `update {s}streams set cursor = case when cursor < $2 then $2 else cursor end,
		attached_at = coalesce(attached_at, {now}) where name = $1`,
	Attach: `update {s}streams set cursor = $2, settled = $2, attached = $2, attached_at = {now}
		where name = $1 and attached_at is null`,

	// Settled reads the index downwards from the sweep's end and stops at the
	// first ID that is old enough.
	Settled: `select sequence from {s}seen where stream = $1 and swept and sequence <= $2 and first_seen < $3
		and sequence > (select case when settled < $4 then $4 else settled end from {s}streams where name = $1)
		order by sequence desc limit 1`,
	Reached: `update {s}streams set settled = case when settled < $2 then $2 else settled end,
		through = case when $4 and (through is null or through < $3) then $3 else through end where name = $1`,
	Lost: `update {s}streams set lost_at = {now}, lost_cursor = $2, lost_oldest = $3 where name = $1`,

	Lease: `update {s}streams set lease_owner = $2, lease_until = {after $3} where name = $1
		and (lease_owner in ('', $2) or lease_until is null or lease_until <= {now})`,
	Release: `update {s}streams set lease_owner = '', lease_until = null where name = $1 and lease_owner = $2`,

	Unreadable: `insert into {s}unreadable as u (stream, delivery_id, times, first_seen, last_seen)
		values ($1, $2, 1, {now}, {now})
		on conflict (stream, delivery_id) do update set times = u.times + 1, last_seen = {now} returning times`,

	Park: `insert into {s}parked (stream, event_id, event, error, attempts, parked_at, first_failed, due)
		values ($1, $2, $3, $4, 1, {now}, {now}, {after $5})`,
	Due:  `select event_id from {s}parked where stream = $1 and failed_at is null and due <= {now} order by due limit $2`,
	Wait: `select set_config('lock_timeout', $1, true)`,
	Parked: `select event, attempts, coalesce((select sequence from {s}seen k where k.stream = p.stream and k.event_id = p.event_id), 0)
		from {s}parked p where stream = $1 and event_id = $2 and failed_at is null and due <= {now} {skip}`,
	Unpark: `delete from {s}parked where stream = $1 and event_id = $2`,
	Failed: `update {s}parked set attempts = attempts + 1, error = $4, due = {after $5},
		failed_at = case when attempts + 1 >= $6 and first_failed <= {after $7} then {now} end
		where stream = $1 and event_id = $2 and attempts = $3 and failed_at is null
		returning failed_at is not null`,
	Revive: `update {s}parked set attempts = 0, first_failed = {now}, due = {now}, failed_at = null
		where stream = $1 and event_id = $2 and discarded_at is null and length(event) > 0`,
	IsGone: `select length(event) = 0 and discarded_at is null from {s}parked where stream = $1 and event_id = $2`,
	Discard: `update {s}parked set event = $3, error = '', failed_at = coalesce(failed_at, {now}),
		discarded_at = coalesce(discarded_at, {now}),
		discarded_by = case when discarded_at is null then $4 else discarded_by end,
		reason = case when discarded_at is null then $5 else reason end
		where stream = $1 and event_id = $2`,
	List: `select p.event_id, coalesce(k.inbox, ''), p.error, p.attempts, p.parked_at, p.first_failed, p.due, p.failed_at, length(p.event) = 0
		from {s}parked p left join {s}seen k on k.stream = p.stream and k.event_id = p.event_id
		left join {s}parked a on a.stream = $1 and a.event_id = $2
		where p.stream = $1 and p.discarded_at is null
		and (a.event_id is null or (p.parked_at, p.event_id) > (a.parked_at, a.event_id))
		order by p.parked_at, p.event_id limit $3`,
	Status: `select (select count(*) from {s}seen where stream = $1),
		(select count(*) from {s}parked where stream = $1 and failed_at is null),
		(select count(*) from {s}parked where stream = $1 and failed_at is not null and discarded_at is null),
		(select count(*) from {s}unreadable where stream = $1)`,

	// Each reads so many rows and no more, from the end of an index.
	Counts: `select {now}, (select attached_at from {s}streams where name = $1),
		(select count(*) from (select 1 from {s}parked where stream = $1 and failed_at is null limit $2) as p),
		(select count(*) from (select 1 from {s}parked where stream = $1 and failed_at is not null and discarded_at is null limit $2) as f),
		(select count(*) from (select 1 from {s}unreadable where stream = $1 limit $2) as u)`,
	Swept: `select inbox, count(*) filter (where pushed), count(*) filter (where not pushed), max(first_seen)
		from (select inbox, pushed, first_seen from {s}seen
			where stream = $1 and swept order by sequence desc limit $2) as newest
		group by inbox`,
	// Of many that came just now the newest hide those that were passed by, so
	// these are read apart.
	Unswept: `select inbox, count(*) filter (where pushed), count(*) filter (where not pushed),
			count(*) filter (where pushed and first_seen >= $3 and first_seen < $4),
			min(first_seen) filter (where pushed and first_seen >= $3 and first_seen < $4)
		from (
			select * from (select event_id, inbox, pushed, first_seen from {s}seen
				where stream = $1 and sequence is null order by last_seen desc limit $2) as newest
			union
			select * from (select event_id, inbox, pushed, first_seen from {s}seen
				where stream = $1 and sequence is null and last_seen < $4 order by last_seen desc limit $2) as passed
		) as unswept group by inbox`,
	Floors: `select inbox, max(swept_until) from {s}floors where stream = $1 and inbox {in $2 text} group by inbox`,
	Known:  `select event_id, sequence is not null from {s}seen where stream = $1 and event_id {in $2 text}`,

	// Subqueries and no join, so that no planner begins with the larger table.
	PruneLimits: `select (select k.inbox from {s}seen k where k.stream = p.stream and k.event_id = p.event_id),
		(select k.sequence from {s}seen k where k.stream = p.stream and k.event_id = p.event_id)
		from {s}parked p where p.stream = $1 and p.failed_at is null`,
	// Of the lowest sequences those that are old: so it never reads further than
	// its limit, however many wait behind to grow old.
	PruneSwept: `select event_id, inbox, sequence, (select life from {s}streams where name = $1)
		from {s}seen where stream = $1 and last_seen < {after $2} and event_id in (
			select event_id from (
				select event_id, last_seen from {s}seen k where stream = $1 and swept
				and sequence > (select attached from {s}streams where name = $1)
				and sequence <= (select settled from {s}streams where name = $1)
				and not exists (select 1 from {s}parked p where p.stream = k.stream and p.event_id = k.event_id)
				order by sequence limit $3
			) as lowest where last_seen < {after $2}
		) {skip}`,
	PruneFloors: `insert into {s}floors as f (stream, inbox, life, swept_from, swept_until)
		select $1, r.inbox, $3, r.lowest, r.highest
		from {rows $2 inbox text, lowest bigint, highest bigint} as r where true order by r.inbox
		on conflict (stream, inbox, life) do update set
			swept_from = case when f.swept_from between 1 and excluded.swept_from then f.swept_from else excluded.swept_from end,
			swept_until = case when f.swept_until > excluded.swept_until then f.swept_until else excluded.swept_until end`,
	PrunePushed: `insert into {s}floors as f (stream, inbox, life, pushed_from, pushed_until)
		select $1, r.inbox, (select life from {s}streams where name = $1), {time r.since}, {time r.until}
		from {rows $2 inbox text, since bigint, until bigint} as r where true order by r.inbox
		on conflict (stream, inbox, life) do update set
			pushed_from = case when f.pushed_from < excluded.pushed_from then f.pushed_from else excluded.pushed_from end,
			pushed_until = case when f.pushed_until > excluded.pushed_until then f.pushed_until else excluded.pushed_until end`,
	PruneIDs: `delete from {s}seen where stream = $1 and event_id {in $2 text}`,
	PruneUnswept: `select event_id, inbox, first_seen from {s}seen k
		where stream = $1 and sequence is null and last_seen < $2
		and not exists (select 1 from {s}parked p where p.stream = k.stream and p.event_id = k.event_id)
		order by last_seen limit $3 {skip}`,
	PruneUnreadable: `delete from {s}unreadable where stream = $1 and delivery_id in (
		select delivery_id from {s}unreadable where stream = $1 and last_seen < {after $2} limit $3 {skip})`,
	PruneContent: `with c as materialized (select event_id as c_id from {s}parked
			where stream = $1 and parked_at < {after $2} and length(event) > 0 limit $4 {skip})
		update {s}parked set event = $3, error = '', failed_at = coalesce(failed_at, {now})
		where stream = $1 and event_id in (select c_id from c)`,
	PruneDiscarded: `with c as materialized (select event_id as c_id from {s}parked
			where stream = $1 and discarded_at < {after $2} limit $3 {skip})
		delete from {s}parked where stream = $1 and event_id in (select c_id from c)`,
}
