-- Proposals to send an intent again: until when, and under which key. Rows that are there have neither.

alter table repairs add column expires_at bigint;
alter table repairs add column idempotency_key text collate "C" not null default '';

create index repairs_redrive on repairs (source) where action = 'redrive';
