-- Operations can be forgotten a part at a time: they lie in generations. An operation belongs to the generation that was
-- open when it was first seen, for good, whatever the processor corrects later.

create table generations (
    generation integer not null primary key,   -- the highest is the one that new operations go into
    opened_at  integer not null,               -- 0 = with the store
    closed_at  integer,                        -- null = open
    dropped_at integer                         -- null = its operations are there
) strict;

insert into generations (generation, opened_at) values (1, 0);

-- How far back a source is no longer known.
create table horizons (
    source    text    not null primary key,
    horizon   integer not null,                -- what occurred before may have been forgotten
    forgotten integer not null                 -- how many operations were
) strict, without rowid;

-- Intents that claim money and are linked with nothing, but shared a key with what was forgotten: what there was to say of
-- them was said, and a person closed it.
create table settled_intents (
    scope      text    not null,
    intent_id  text    not null,
    generation integer not null,
    primary key (intent_id, scope)
) strict, without rowid;

-- Every operation that was ever seen, for good: what is forgotten is still known to have been there.
create table operation_claims (
    source       text    not null,
    operation_id text    not null,
    account      text    not null,
    generation   integer not null,
    primary key (operation_id, source, account)
) strict, without rowid;

alter table operations add column generation integer not null default 1;

insert into operation_claims (source, operation_id, account, generation)
select source, operation_id, account, 1 from operations order by operation_id, source, account;
