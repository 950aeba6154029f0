-- +goose Up

-- Whose an engine's name is.
create table {s}engines (
    name    {id} not null,
    stream  {id} not null,
    primary key (name)
);

-- One row a workflow; a new run of an ID used before takes the row over.
create table {s}workflows (
    engine        {id} not null,
    id            {id} not null,
    run           {id} not null,                -- random, part of every idempotency key
    kind          text not null,
    inbox         {id} not null,
    counterparty  {id} not null,                -- normalised address
    status        text not null,
    step          bigint not null default 0,              -- sends planned
    arrived       bigint not null default 0,    -- inputs placed
    consumed      bigint not null default 0,    -- inputs consumed, or taken away again
    gen           bigint not null default 0,    -- raised by every claim
    due           {time},                       -- when a worker must look: runnable, lease end, deadline
    deadline      {time},
    wait          bigint not null default 0,    -- microseconds the deadline lies after the send's acceptance
    finish        {bool} not null default false, -- done once the send is accepted
    kick          {bool} not null default false, -- run the step even without inputs
    timed_out     {bool} not null default false, -- this run is the deadline's
    timeouts      bigint not null default 0,
    attempts      bigint not null default 0,    -- failed runs in a row
    stalls        bigint not null default 0,    -- runs in a row that the provider did not let begin
    begun         {bool} not null default false, -- after a failed run: this one has come to the step
    owner         text not null default '',
    error         text not null default '',
    state         {bytes},
    created_at    {time} not null,
    updated_at    {time} not null,
    finished_at   {time},
    primary key (engine, id)
);
create index {i}workflows_due on {s}workflows (engine, due) where due is not null;
create index {i}workflows_counterparty on {s}workflows (engine, inbox, counterparty, id);
create index {i}workflows_review on {s}workflows (engine) where status = 'needs_review';
create index {i}workflows_finished on {s}workflows (engine, finished_at) where finished_at is not null;

-- Who owns a thread. Rows outlive their workflows.
create table {s}threads (
    engine      {id} not null,
    stream      {id} not null,
    inbox       {id} not null,
    thread      {id} not null,
    workflow    {id} not null,
    run         {id} not null,
    matched_by  text not null,                  -- send, sender, person
    earlier_workflow {id} not null default '',   -- whose it was before it moved, for an undo
    earlier_run      {id} not null default '',
    earlier_by       text not null default '',
    at          {time} not null,
    primary key (engine, stream, inbox, thread)
);
create index {i}threads_workflow on {s}threads (engine, workflow);

-- The mailbox: one row an event, in exactly one place.
create table {s}mail (
    id          {serial},
    engine      {id} not null,
    stream      {id} not null,
    event_id    {id} not null,
    kind        text not null,
    inbox       {id} not null,
    thread      {id} not null default '',
    message     {id} not null default '',
    approval    {id} not null default '',
    delivery    text not null default '',
    version     bigint not null default 0,
    alias_of    bigint,                         -- another event of the same message
    place       text not null,                  -- unplaced, input, review, settled
    workflow    {id} not null default '',       -- of an input, consumed or not
    run         {id} not null default '',
    matched_by  text not null default '',       -- thread, sender, person, engine
    proof       text not null default '',       -- what ties it to the workflow, see resume.Proof
    consumed_by bigint,                         -- generation of the run that consumed it; null while pending
    position    bigint not null default 0,      -- its place among the inputs of that run
    reason      text not null default '',       -- why it is in review, or settled
    candidates  text not null default '[]',     -- JSON array of workflow IDs
    data        {bytes},                        -- a signal's
    due         {time} not null,                -- not looked at before
    attempts    bigint not null default 0,
    unread      bigint not null default 0,      -- tries in a row to read it that failed, itself being the trouble
    unread_since {time},                        -- the first of them
    decided_by  text not null default '',       -- the person
    decided_at  {time},
    decision    text not null default '',       -- bind, dismiss
    target      {id} not null default '',       -- the workflow of a bind
    arrived_at  {time} not null,
    unique (engine, event_id, stream)
);
create unique index {i}mail_message on {s}mail (engine, stream, inbox, message) where kind = 'received' and message <> '' and alias_of is null;
create index {i}mail_unplaced on {s}mail (engine, due) where place = 'unplaced';
create index {i}mail_thread on {s}mail (engine, stream, inbox, thread) where place in ('unplaced', 'review');
create index {i}mail_pending on {s}mail (engine, workflow) where place = 'input' and consumed_by is null;
create index {i}mail_inputs on {s}mail (engine, workflow, id) where place = 'input';
create index {i}mail_canceled on {s}mail (engine, workflow) where place = 'settled' and reason = 'canceled';
create index {i}mail_review on {s}mail (engine, arrived_at) where place = 'review';
create index {i}mail_settled on {s}mail (engine, id) where place = 'settled' and kind = 'received' and alias_of is null and decision = '';
create index {i}mail_data on {s}mail (engine, due) where data is not null;
create index {i}mail_about on {s}mail (engine, inbox, message) where message <> '' and kind <> 'received' and (place = 'unplaced' or reason = 'not_ours');
create index {i}mail_approval on {s}mail (engine, approval) where approval <> '' and kind = 'approval' and (place = 'unplaced' or reason = 'not_ours');

-- Mail to send: written with the step that plans it, driven to an outcome.
create table {s}sends (
    engine         {id} not null,
    workflow       {id} not null,
    run            {id} not null,
    step           bigint not null,
    key            {id} not null,               -- the Idempotency-Key
    inbox          {id} not null,
    reply_to       {id} not null default '',
    body           {bytes},                     -- dropped once confirmed and past the replay window
    hash           text not null,
    counterparty   {id} not null,               -- the workflow's, for Forget
    recipients     text not null,               -- JSON array, normalised
    subject        text not null,
    answering      {bool} not null,             -- planned by a run that was given mail
    state          text not null,               -- planned, held, accepted, failed, unknown, dropped
    attempts       bigint not null default 0,
    stalls         bigint not null default 0,   -- attempts in a row that the provider answered with a failure of its own
    first_attempt  {time},
    due            {time},                      -- when a sender must look; null once there is an outcome
    message        {id} not null default '',
    thread         {id} not null default '',
    approval       {id} not null default '',
    version        bigint not null default 0,   -- of the newest delivery snapshot
    delivery       text not null default '',
    error          text not null default '',
    created_at     {time} not null,
    settled_at     {time},
    kept_from      {time} not null,             -- retention counts from here: tidying moves it while the workflow stays
    primary key (engine, workflow, run, step)
);
create unique index {i}sends_key on {s}sends (engine, key);
create index {i}sends_due on {s}sends (engine, due) where due is not null;
create index {i}sends_open on {s}sends (engine, inbox, workflow, step) where state in ('planned', 'held');
create index {i}sends_nameless on {s}sends (engine, inbox, thread, workflow, step) where state = 'accepted' and message = '';
create index {i}sends_message on {s}sends (engine, inbox, message) where message <> '';
create index {i}sends_bodies on {s}sends (engine, created_at) where body is not null and state in ('accepted', 'failed', 'dropped');
create index {i}sends_kept on {s}sends (engine, kept_from) where counterparty <> '' and state not in ('planned', 'held');
create index {i}sends_approval on {s}sends (engine, approval) where approval <> '';

-- What happened, for people: IDs, and the reasons that steps and people gave.
create table {s}history (
    id        {serial},
    engine    {id} not null,
    workflow  {id} not null,                     -- empty for what only concerns mail
    run       {id} not null,
    event_id  {id} not null default '',          -- of the mail a person decided on
    at        {time} not null,
    what      text not null,
    step      bigint not null default 0,
    detail    text not null default ''
);
create index {i}history_workflow on {s}history (engine, workflow, id);
create index {i}history_mail on {s}history (engine, at) where workflow = '';
create index {i}history_event on {s}history (engine, event_id, id) where event_id <> '';
