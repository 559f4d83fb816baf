-- The store, first version. Money is whole minor units with a currency beside it, time is microseconds UTC, ids are
-- made by the client, an empty text means "none". Nothing here needs a trigger, a sequence or session state.

-- Control tables: small, and apart from the rows.

create table runs (
    run_id       text    not null primary key,
    command      text    not null,
    sources      text    not null,             -- json array of names
    as_of        integer not null,
    started_at   integer not null,
    finished_at  integer,                      -- null = running, or killed
    version      text    not null,
    config_hash  text    not null,
    exit_code    integer,
    outcome      text    not null default ''
) strict, without rowid;

create table run_reports (
    run_id       text    not null primary key,
    report_json  text    not null
) strict;

create table run_keys (
    run_key      text    not null primary key,
    fingerprint  text    not null,
    run_id       text    not null,
    owner        text,                         -- null = nobody holds it
    locked_until integer,                      -- by this database's clock
    is_completed integer not null default 0
) strict, without rowid;

create index run_keys_by_run on run_keys (run_id);

-- The marker of a committed slice; its insert is the first write of the commit.
create table run_commits (
    source       text    not null,
    run_id       text    not null,
    as_of        integer not null,
    totals_json  text    not null,
    reported_by  text    not null default '',  -- the run that told its results; empty = not told yet
    primary key (source, run_id)
) strict, without rowid;

create index run_commits_by_run on run_commits (run_id);
create index run_commits_untold on run_commits (source) where reported_by = '';

create table leases (
    source       text    not null primary key,
    epoch        integer not null,
    owner        text,                         -- null = free
    run_id       text    not null,
    locked_until integer                       -- by this database's clock
) strict, without rowid;

create table watermarks (
    source       text    not null primary key,
    hi           integer not null,
    low          integer not null,
    as_of        integer not null,
    lag          integer not null,
    lookback     integer not null,
    feed_hash    text    not null,
    series_json  text    not null,             -- {"name of a series": highest number read}
    config_hash  text    not null,
    run_id       text    not null,             -- empty = set by hand
    epoch        integer not null
) strict, without rowid;

create table watermark_changes (
    source       text    not null,
    change_no    integer not null,
    hi_before    integer,
    hi_after     integer not null,
    reason       text    not null,
    changed_by   text    not null,
    changed_at   integer not null,
    gap_break_id text    not null,             -- empty = nothing was skipped
    primary key (source, change_no)
) strict, without rowid;

-- What the processor says happened. Keys and indexes begin with the column that tells rows apart: comparing is cheaper,
-- and a row's key is also what its table could be distributed by.

create table operations (
    source             text    not null,
    operation_id       text    not null,
    account            text    not null,
    id_kind            text    not null,
    kind               text    not null,
    status             text    not null,
    is_final           integer not null,
    amount_minor       integer not null,
    currency           text    not null,
    fee_minor          integer,
    net_minor          integer,
    settle_currency    text    not null,
    occurred_at        integer not null,
    reference          text    not null,
    parent_id          text    not null,
    object_id          text    not null,
    payout_id          text    not null,
    description        text    not null,
    refund_total_minor integer,
    refunded_at        integer,
    ignore_reason      text    not null,       -- empty = not set aside
    invalid            text    not null,       -- empty = usable
    file               text    not null,       -- evidence: where it was read
    line               integer not null,
    version            integer not null,
    run_id             text    not null,       -- the run that wrote this version
    primary key (operation_id, source, account)
) strict;

create index operations_by_time on operations (occurred_at, source);
create index operations_by_reference on operations (reference, source) where reference <> '';
create index operations_by_parent on operations (parent_id, source) where parent_id <> '';
create index operations_by_object on operations (object_id, source) where object_id <> '';
create index operations_by_payout on operations (payout_id, source) where payout_id <> '';
create index operations_pending on operations (source) where status = 'pending';

-- Content that gave way (fate = 'replaced') or was never taken (fate = 'rejected').
create table operation_versions (
    source       text    not null,
    operation_id text    not null,
    account      text    not null,
    run_id       text    not null,
    fate         text    not null,
    as_of        integer not null,
    content_json text    not null,
    primary key (operation_id, source, account, run_id, fate)
) strict;

-- What our own software meant to happen.

create table intents (
    scope                  text    not null,
    intent_id              text    not null,
    idempotency_key        text    not null,
    kind                   text    not null,
    amount_minor           integer not null,
    currency               text    not null,
    status                 text    not null,
    created_at             integer not null,
    processor_ref          text    not null,
    attempt                integer,
    parent_intent_id       text    not null,
    reference              text    not null,
    source                 text    not null,
    first_attempt_at       integer,
    written_amount         text    not null,
    invalid                text    not null,
    is_recorded            integer not null,
    version                integer not null,
    imported_status        text    not null,   -- empty = never imported
    imported_processor_ref text    not null,
    superseded_by          text    not null,   -- empty = in force
    run_id                 text    not null,   -- the run that wrote this version
    primary key (intent_id, scope)
) strict;

create index intents_by_time on intents (created_at, scope);
create index intents_by_key on intents (idempotency_key, scope) where idempotency_key <> '';
create index intents_by_processor_ref on intents (processor_ref, scope) where processor_ref <> '';
create index intents_by_reference on intents (reference, scope) where reference <> '';
create index intents_by_parent on intents (parent_intent_id, scope) where parent_intent_id <> '';
create index intents_superseded on intents (scope) where superseded_by <> '';
create index intents_open on intents (scope) where status in ('created', 'pending');

create table intent_versions (
    scope        text    not null,
    intent_id    text    not null,
    version      integer not null,
    run_id       text    not null,             -- the run that replaced it; empty = by hand
    as_of        integer not null,
    cause        text    not null,             -- import, repair, superseded
    content_json text    not null,
    primary key (intent_id, scope, version, cause)
) strict;

-- What belongs together, what does not, and what was done about it.

create table matches (
    source       text    not null,
    operation_id text    not null,
    account      text    not null,
    scope        text    not null,
    intent_id    text    not null,
    rule         text    not null,
    is_principal integer not null,
    run_id       text    not null,
    primary key (operation_id, source, account)
) strict, without rowid;

-- Two operations cannot both be the one that satisfies an intent.
create unique index matches_one_principal on matches (intent_id, scope) where is_principal = 1;
create index matches_others on matches (intent_id, scope) where is_principal = 0;

create table breaks (
    break_id       text    not null primary key,
    class          text    not null,
    source         text    not null,
    account        text    not null,
    operation_id   text    not null,
    intent_id      text    not null,
    money_minor    integer,
    money_currency text    not null,
    delta_minor    integer,
    delta_currency text    not null,
    why            text    not null,
    evidence       text    not null,
    disposition    text    not null,
    is_sticky      integer not null,
    first_seen_run text    not null,
    first_seen_at  integer not null,
    last_seen_run  text    not null,
    last_seen_at   integer not null,
    resolved_run   text    not null            -- empty = not resolved
) strict;

create index breaks_unresolved on breaks (break_id) where resolved_run = '';
create index breaks_by_resolver on breaks (resolved_run) where resolved_run <> '';

create table break_events (
    break_id  text    not null,
    event_no  integer not null,
    what      text    not null,
    done_at   integer not null,
    done_by   text    not null,                -- empty = paysweep
    run_id    text    not null,                -- empty = by hand
    note      text    not null,
    closed_as text    not null,                -- empty = no close
    until     integer,
    evidence  text    not null,
    primary key (break_id, event_no)
) strict;

create table repairs (
    repair_id           text    not null primary key,
    break_id            text    not null,
    source              text    not null,
    account             text    not null,
    class               text    not null,
    action              text    not null,
    scope               text    not null,
    intent_id           text    not null,
    operation_id        text    not null,
    from_status         text    not null,      -- empty = a recorded row
    from_processor_ref  text    not null,
    to_kind             text    not null,      -- empty unless a recorded row
    to_status           text    not null,
    to_processor_ref    text    not null,
    to_parent_intent_id text    not null,
    to_amount_minor     integer,
    to_currency         text    not null,
    planned_version     integer not null,
    occurred_at         integer not null,
    evidence            text    not null,
    run_id              text    not null,
    written_at          integer not null
) strict;

create index repairs_by_break on repairs (break_id);
create index repairs_by_intent on repairs (intent_id, scope);
create index repairs_by_run on repairs (run_id);

create table repair_events (
    repair_id text    not null,
    event_no  integer not null,
    state     text    not null,
    done_at   integer not null,
    done_by   text    not null,                -- empty = paysweep
    run_id    text    not null,                -- empty = by hand
    note      text    not null,
    primary key (repair_id, event_no)
) strict;
