-- The store, first version; the twin of the embedded one, table by table and column by column. Texts are compared byte
-- by byte, whatever the language of the database. Nothing names a schema: the transaction that runs this has ours as its
-- only one. Money is whole minor units with a currency beside it, time is microseconds UTC, ids are
-- made by the client, an empty text means "none". Nothing here needs a trigger, a sequence or session state.

-- Control tables: small, and apart from the rows.

create table runs (
    run_id      text collate "C" not null primary key,
    command     text collate "C" not null,
    sources     text collate "C" not null,  -- json array of names
    as_of       bigint           not null,
    started_at  bigint           not null,
    finished_at bigint,  -- null = running, or killed
    version     text collate "C" not null,
    config_hash text collate "C" not null,
    exit_code   bigint,
    outcome     text collate "C" not null default ''
);

create table run_reports (
    run_id      text collate "C" not null primary key,
    report_json text collate "C" not null
);

create table run_keys (
    run_key      text collate "C" not null primary key,
    fingerprint  text collate "C" not null,
    run_id       text collate "C" not null,
    owner        text collate "C",  -- null = nobody holds it
    locked_until bigint,  -- by this database's clock
    is_completed bigint           not null default 0
);

create index run_keys_by_run on run_keys (run_id);

-- The marker of a committed slice; its insert is the first write of the commit.
create table run_commits (
    source      text collate "C" not null,
    run_id      text collate "C" not null,
    as_of       bigint           not null,
    totals_json text collate "C" not null,
    reported_by text collate "C" not null default '',  -- the run that told its results; empty = not told yet
    primary key (source, run_id)
);

create index run_commits_by_run on run_commits (run_id);
create index run_commits_untold on run_commits (source) where reported_by = '';

create table leases (
    source       text collate "C" not null primary key,
    epoch        bigint           not null,
    owner        text collate "C",  -- null = free
    run_id       text collate "C" not null,
    locked_until bigint           -- by this database's clock
);

create table watermarks (
    source      text collate "C" not null primary key,
    hi          bigint           not null,
    low         bigint           not null,
    as_of       bigint           not null,
    lag         bigint           not null,
    lookback    bigint           not null,
    feed_hash   text collate "C" not null,
    series_json text collate "C" not null,   -- {"name of a series": highest number read}
    config_hash text collate "C" not null,
    run_id      text collate "C" not null,  -- empty = set by hand
    epoch       bigint           not null
);

create table watermark_changes (
    source       text collate "C" not null,
    change_no    bigint           not null,
    hi_before    bigint,
    hi_after     bigint           not null,
    reason       text collate "C" not null,
    changed_by   text collate "C" not null,
    changed_at   bigint           not null,
    gap_break_id text collate "C" not null,  -- empty = nothing was skipped
    primary key (source, change_no)
);

-- What the processor says happened. Keys and indexes begin with the column that tells rows apart: comparing is cheaper,
-- and a row's key is also what its table could be distributed by.

create table operations (
    source             text collate "C" not null,
    operation_id       text collate "C" not null,
    account            text collate "C" not null,
    id_kind            text collate "C" not null,
    kind               text collate "C" not null,
    status             text collate "C" not null,
    is_final           bigint           not null,
    amount_minor       bigint           not null,
    currency           text collate "C" not null,
    fee_minor          bigint,
    net_minor          bigint,
    settle_currency    text collate "C" not null,
    occurred_at        bigint           not null,
    reference          text collate "C" not null,
    parent_id          text collate "C" not null,
    object_id          text collate "C" not null,
    payout_id          text collate "C" not null,
    description        text collate "C" not null,
    refund_total_minor bigint,
    refunded_at        bigint,
    ignore_reason      text collate "C" not null,  -- empty = not set aside
    invalid            text collate "C" not null,  -- empty = usable
    file               text collate "C" not null,  -- evidence: where it was read
    line               bigint           not null,
    version            bigint           not null,
    run_id             text collate "C" not null,  -- the run that wrote this version
    primary key (operation_id, source, account)
);

create index operations_by_time on operations (occurred_at, source);
create index operations_by_reference on operations (reference, source) where reference <> '';
create index operations_by_parent on operations (parent_id, source) where parent_id <> '';
create index operations_by_object on operations (object_id, source) where object_id <> '';
create index operations_by_payout on operations (payout_id, source) where payout_id <> '';
create index operations_pending on operations (source) where status = 'pending';

-- Content that gave way (fate = 'replaced') or was never taken (fate = 'rejected').
create table operation_versions (
    source       text collate "C" not null,
    operation_id text collate "C" not null,
    account      text collate "C" not null,
    run_id       text collate "C" not null,
    fate         text collate "C" not null,
    as_of        bigint           not null,
    content_json text collate "C" not null,
    primary key (operation_id, source, account, run_id, fate)
);

-- What our own software meant to happen.

create table intents (
    scope                  text collate "C" not null,
    intent_id              text collate "C" not null,
    idempotency_key        text collate "C" not null,
    kind                   text collate "C" not null,
    amount_minor           bigint           not null,
    currency               text collate "C" not null,
    status                 text collate "C" not null,
    created_at             bigint           not null,
    processor_ref          text collate "C" not null,
    attempt                bigint,
    parent_intent_id       text collate "C" not null,
    reference              text collate "C" not null,
    source                 text collate "C" not null,
    first_attempt_at       bigint,
    written_amount         text collate "C" not null,
    invalid                text collate "C" not null,
    is_recorded            bigint           not null,
    version                bigint           not null,
    imported_status        text collate "C" not null,  -- empty = never imported
    imported_processor_ref text collate "C" not null,
    superseded_by          text collate "C" not null,  -- empty = in force
    run_id                 text collate "C" not null,  -- the run that wrote this version
    primary key (intent_id, scope)
);

create index intents_by_time on intents (created_at, scope);
create index intents_by_key on intents (idempotency_key, scope) where idempotency_key <> '';
create index intents_by_processor_ref on intents (processor_ref, scope) where processor_ref <> '';
create index intents_by_reference on intents (reference, scope) where reference <> '';
create index intents_by_parent on intents (parent_intent_id, scope) where parent_intent_id <> '';
create index intents_superseded on intents (scope) where superseded_by <> '';
create index intents_open on intents (scope) where status in ('created', 'pending');

create table intent_versions (
    scope        text collate "C" not null,
    intent_id    text collate "C" not null,
    version      bigint           not null,
    run_id       text collate "C" not null,  -- the run that replaced it; empty = by hand
    as_of        bigint           not null,
    cause        text collate "C" not null,  -- import, repair, superseded
    content_json text collate "C" not null,
    primary key (intent_id, scope, version, cause)
);

-- What belongs together, what does not, and what was done about it.

create table matches (
    source       text collate "C" not null,
    operation_id text collate "C" not null,
    account      text collate "C" not null,
    scope        text collate "C" not null,
    intent_id    text collate "C" not null,
    rule         text collate "C" not null,
    is_principal bigint           not null,
    run_id       text collate "C" not null,
    primary key (operation_id, source, account)
);

-- Two operations cannot both be the one that satisfies an intent.
create unique index matches_one_principal on matches (intent_id, scope) where is_principal = 1;
create index matches_others on matches (intent_id, scope) where is_principal = 0;

create table breaks (
    break_id       text collate "C" not null primary key,
    class          text collate "C" not null,
    source         text collate "C" not null,
    account        text collate "C" not null,
    operation_id   text collate "C" not null,
    intent_id      text collate "C" not null,
    money_minor    bigint,
    money_currency text collate "C" not null,
    delta_minor    bigint,
    delta_currency text collate "C" not null,
    why            text collate "C" not null,
    evidence       text collate "C" not null,
    disposition    text collate "C" not null,
    is_sticky      bigint           not null,
    first_seen_run text collate "C" not null,
    first_seen_at  bigint           not null,
    last_seen_run  text collate "C" not null,
    last_seen_at   bigint           not null,
    resolved_run   text collate "C" not null  -- empty = not resolved
);

create index breaks_unresolved on breaks (break_id) where resolved_run = '';
create index breaks_by_resolver on breaks (resolved_run) where resolved_run <> '';

create table break_events (
    break_id  text collate "C" not null,
    event_no  bigint           not null,
    what      text collate "C" not null,
    done_at   bigint           not null,
    done_by   text collate "C" not null,  -- empty = paysweep
    run_id    text collate "C" not null,  -- empty = by hand
    note      text collate "C" not null,
    closed_as text collate "C" not null,  -- empty = no close
    until     bigint,
    evidence  text collate "C" not null,
    primary key (break_id, event_no)
);

create table repairs (
    repair_id           text collate "C" not null primary key,
    break_id            text collate "C" not null,
    source              text collate "C" not null,
    account             text collate "C" not null,
    class               text collate "C" not null,
    action              text collate "C" not null,
    scope               text collate "C" not null,
    intent_id           text collate "C" not null,
    operation_id        text collate "C" not null,
    from_status         text collate "C" not null,  -- empty = a recorded row
    from_processor_ref  text collate "C" not null,
    to_kind             text collate "C" not null,  -- empty unless a recorded row
    to_status           text collate "C" not null,
    to_processor_ref    text collate "C" not null,
    to_parent_intent_id text collate "C" not null,
    to_amount_minor     bigint,
    to_currency         text collate "C" not null,
    planned_version     bigint           not null,
    occurred_at         bigint           not null,
    evidence            text collate "C" not null,
    run_id              text collate "C" not null,
    written_at          bigint           not null
);

create index repairs_by_break on repairs (break_id);
create index repairs_by_intent on repairs (intent_id, scope);
create index repairs_by_run on repairs (run_id);

create table repair_events (
    repair_id text collate "C" not null,
    event_no  bigint           not null,
    state     text collate "C" not null,
    done_at   bigint           not null,
    done_by   text collate "C" not null,  -- empty = paysweep
    run_id    text collate "C" not null,  -- empty = by hand
    note      text collate "C" not null,
    primary key (repair_id, event_no)
);
