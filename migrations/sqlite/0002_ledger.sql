-- The chain of the ledger: one entry for each step of a repair and each word of a person about a break, every entry
-- sealed with the one before it. A store that was there before keeps its record; the first entry says how many steps
-- are older than the chain.

create table chain (
    position     integer not null primary key, -- 0 = the beginning
    what         text    not null,             -- begin, repair, break
    subject_id   text    not null,
    event_no     integer not null,
    content_hash text    not null,             -- of the step as it was written
    hash         text    not null              -- of this entry and the one before it
) strict;

create unique index chain_by_event on chain (subject_id, what, event_no);

-- Where the chain ends: who appends waits here. The key of an entry decides in the end.
create table chain_head (
    only_row integer not null primary key check (only_row = 1),
    position integer not null,                 -- -1 = nothing yet
    hash     text    not null
) strict;

insert into chain_head (only_row, position, hash) values (1, -1, '');

-- Who carries a repair over into a table of the company's own, and until when.
create table repair_claims (
    repair_id    text    not null primary key,
    epoch        integer not null,
    run_id       text    not null,             -- empty = by hand
    locked_until integer                       -- by this database's clock; null = free
) strict;

alter table runs add column started_by text not null default '';
