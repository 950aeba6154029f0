-- +goose Up

-- Where each stream's sweep stands. One row a stream.
create table {s}streams (
    name         {id} primary key,
    life         {id} not null default '',     -- random: a row that was lost and made again is another
    origin       text not null,
    environment  text not null,
    credential   text not null,
    attached_at  {time},                       -- null: no position is stored yet
    cursor       bigint not null default 0,
    settled      bigint not null default 0,
    attached     bigint not null default 0,
    through      {time},                       -- everything up to here has been received
    lease_owner  text not null default '',
    lease_until  {time},
    credential_changed_at {time},
    lost_at      {time},                       -- the last loss report (a 410)
    lost_cursor  bigint not null default 0,
    lost_oldest  bigint not null default 0,
    created_at   {time} not null
);

-- The IDs of events whose work is committed, or parked. Not partitioned: by
-- time, one ID could stand in two partitions.
create table {s}seen (
    stream      {id} not null,
    event_id    {id} not null,
    sequence    bigint,                        -- null until a sweep meets the event
    inbox       {id} not null default '',
    swept       {bool} not null default false, -- a sweep met it in its turn, above the settled position
    pushed      {bool} not null default false, -- it came through the push door
    first_seen  {time} not null,
    last_seen   {time} not null,               -- exact to an hour
    primary key (stream, event_id)
);
-- first_seen is in it so that a look for the settled position reads no row.
create index {i}seen_sequence on {s}seen (stream, sequence, first_seen) where swept;
create index {i}seen_unswept on {s}seen (stream, last_seen) where sequence is null;

-- What was handled although its ID is gone. A sweep in its turn reads everything
-- from the settled position on, so what lies between two events that it met has
-- been handled; of what lies below the first, and of what came before another
-- life of the stream's row began, that says nothing. The IDs of events that no
-- sweep has met go by time, for their sequence is not known.
create table {s}floors (
    stream        {id} not null,
    inbox         {id} not null,
    life          {id} not null,               -- of the stream's row
    swept_from    bigint not null default 0,   -- what a sweep meets between these two
    swept_until   bigint not null default 0,   -- has been handled
    pushed_from   {time},                      -- what happened between these two
    pushed_until  {time},                      -- came by push
    primary key (stream, inbox, life)
);

-- Events on which the handler fails alone.
create table {s}parked (
    stream        {id} not null,
    event_id      {id} not null,
    event         {bytes} not null,            -- encoded; a stranger's text may stand in it; empty once dropped
    error         text not null,               -- so may it here; dropped with it
    attempts      bigint not null,
    parked_at     {time} not null,             -- its content is kept 30 days from here
    first_failed  {time} not null,             -- since a person had it tried again
    due           {time} not null,
    failed_at     {time},                      -- given up: a person decides
    discarded_at  {time},
    discarded_by  text not null default '',
    reason        text not null default '',
    primary key (stream, event_id)
);
create index {i}parked_due on {s}parked (stream, due) where failed_at is null;
create index {i}parked_failed on {s}parked (stream) where failed_at is not null and discarded_at is null;
create index {i}parked_content on {s}parked (stream, parked_at) where length(event) > 0;
create index {i}parked_discarded on {s}parked (stream, discarded_at) where discarded_at is not null;

-- Genuine deliveries whose body is not an event.
create table {s}unreadable (
    stream       {id} not null,
    delivery_id  {id} not null,
    times        bigint not null,
    first_seen   {time} not null,
    last_seen    {time} not null,
    primary key (stream, delivery_id)
);
