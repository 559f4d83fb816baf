-- Steps of repairs that a channel has taken, and from when on it is told of them: what happened before is told to nobody.

create table delivery_channels (
    channel text collate "C" not null primary key,
    since   bigint           not null
);

create table repair_deliveries (
    channel      text collate "C" not null,
    repair_id    text collate "C" not null,
    event_no     bigint           not null,
    run_id       text collate "C" not null,
    delivered_at bigint           not null,
    primary key (channel, repair_id, event_no)
);
