-- When `paysweep runs prune` forgot the report of a run. The line of the run stays, since breaks, repairs and keys name it.
alter table runs add column report_pruned_at bigint; -- null = it was not
