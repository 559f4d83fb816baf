-- Operations can be forgotten a part at a time: they lie in generations, each a table of its own that is dropped whole. An
-- operation belongs to the generation that was open when it was first seen, for good, whatever the processor corrects later.

create table generations (
    generation bigint not null primary key,  -- the highest is the one that new operations go into
    opened_at  bigint not null,  -- 0 = with the store
    closed_at  bigint,  -- null = open
    dropped_at bigint  -- null = its operations are there
);

insert into generations (generation, opened_at) values (1, 0);

-- How far back a source is no longer known.
create table horizons (
    source    text collate "C" not null primary key,
    horizon   bigint           not null,  -- what occurred before may have been forgotten
    forgotten bigint           not null  -- how many operations were
);

-- Intents that claim money and are linked with nothing, but shared a key with what was forgotten: what there was to say of
-- them was said, and a person closed it.
create table settled_intents (
    scope      text collate "C" not null,
    intent_id  text collate "C" not null,
    generation bigint           not null,
    primary key (intent_id, scope)
);

-- Every operation that was ever seen, for good: what is forgotten is still known to have been there. A key across all
-- generations is what a table that is dropped in parts cannot have.
create table operation_claims (
    source       text collate "C" not null,
    operation_id text collate "C" not null,
    account      text collate "C" not null,
    generation   bigint           not null,
    primary key (operation_id, source, account)
);

alter table operations rename to operations_g1;
alter index operations_by_time rename to operations_g1_by_time;
alter index operations_by_reference rename to operations_g1_by_reference;
alter index operations_by_parent rename to operations_g1_by_parent;
alter index operations_by_object rename to operations_g1_by_object;
alter index operations_by_payout rename to operations_g1_by_payout;
alter index operations_pending rename to operations_g1_pending;
alter table operations_g1 drop constraint operations_pkey;
alter table operations_g1 add column generation bigint not null default 1;
alter table operations_g1 alter column generation drop default;
alter table operations_g1 add constraint operations_g1_pkey primary key (operation_id, source, account, generation);

create table operations (like operations_g1) partition by list (generation);
alter table operations add constraint operations_pkey primary key (operation_id, source, account, generation);
create index operations_by_time on operations (occurred_at, source);
create index operations_by_reference on operations (reference, source) where reference <> '';
create index operations_by_parent on operations (parent_id, source) where parent_id <> '';
create index operations_by_object on operations (object_id, source) where object_id <> '';
create index operations_by_payout on operations (payout_id, source) where payout_id <> '';
create index operations_pending on operations (source) where status = 'pending';
alter table operations attach partition operations_g1 for values in (1);

insert into operation_claims (source, operation_id, account, generation)
select source, operation_id, account, 1 from operations order by operation_id, source, account;
