-- Whose account a source reads, and of which mode: what its first run found, and every later one has to find again.
-- Changed only where something is filled in that was not known, and by hand, with a word why.

create table pins (
    source   text collate "C" not null primary key,
    account  text collate "C" not null,  -- as the processor calls it; empty = it does not say
    declared text collate "C" not null,  -- `account` of the source, as it is configured; empty = none
    mode     text collate "C" not null   -- live, test; empty = let go by hand
);

create table pin_changes (
    source     text collate "C" not null,
    change_no  bigint           not null,
    account    text collate "C" not null,  -- what was let go
    declared   text collate "C" not null,
    mode       text collate "C" not null,
    reason     text collate "C" not null,
    changed_by text collate "C" not null,
    changed_at bigint           not null,
    primary key (source, change_no)
);
