-- The role of the nightly run: it adds, and changes what has to change, and can take nothing away from the record. Run it
-- once as the owner of the store, after `paysweep migrate`, and again after each upgrade that migrates. The password, or
-- whatever lets it in, is yours to set. `paysweep check` refuses a role that may more.
create role paysweep_run login nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
grant usage on schema paysweep to paysweep_run;
grant select on all tables in schema paysweep to paysweep_run;
grant insert on all tables in schema paysweep to paysweep_run;
revoke insert on paysweep.schema_version, paysweep.generations, paysweep.horizons, paysweep.settled_intents from paysweep_run;
grant update on paysweep.breaks, paysweep.chain_head, paysweep.intents, paysweep.leases, paysweep.matches,
    paysweep.operations, paysweep.pins, paysweep.repair_claims, paysweep.run_commits, paysweep.run_keys, paysweep.run_reports, paysweep.runs, paysweep.watermarks to paysweep_run;
grant delete on paysweep.run_reports to paysweep_run;  -- `paysweep runs prune` forgets old reports; `operations prune` is the owner's
