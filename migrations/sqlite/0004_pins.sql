-- Whose account a source reads, and of which mode: what its first run found, and every later one has to find again.
-- Changed only where something is filled in that was not known, and by hand, with a word why.

create table pins (
    source   text    not null primary key,
    account  text    not null,                 -- as the processor calls it; empty = it does not say
    declared text    not null,                 -- `account` of the source, as it is configured; empty = none
    mode     text    not null                  -- live, test; empty = let go by hand
) strict, without rowid;

create table pin_changes (
    source     text    not null,
    change_no  integer not null,
    account    text    not null,               -- what was let go
    declared   text    not null,
    mode       text    not null,
    reason     text    not null,
    changed_by text    not null,
    changed_at integer not null,
    primary key (source, change_no)
) strict, without rowid;
