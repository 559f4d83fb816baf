-- Steps of repairs that a channel has taken, and from when on it is told of them: what happened before is told to nobody.

create table delivery_channels (
    channel text    not null primary key,
    since   integer not null
) strict, without rowid;

create table repair_deliveries (
    channel      text    not null,
    repair_id    text    not null,
    event_no     integer not null,
    run_id       text    not null,
    delivered_at integer not null,
    primary key (channel, repair_id, event_no)
) strict, without rowid;
