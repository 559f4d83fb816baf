//! Everything that is tested from outside, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests wait, measure, print figures, and are switched by the environment"
)]

mod alerts;
mod api;
mod api_adyen;
mod api_diff;
mod api_events;
mod api_faults;
mod api_month;
mod api_paypal;
mod api_pieces;
mod api_profiles;
mod api_reports;
mod api_rest;
mod apply;
mod breaks;
mod browser;
mod cli;
mod core;
mod corpus;
mod cron;
mod dialects;
mod explained;
mod fake;
mod first_run;
mod forms;
mod golden;
mod grants;
mod hostile;
mod infer;
mod intents_sql;
mod interrupts;
mod joined;
mod ledger;
mod mariadb;
mod nights;
mod pins;
mod pooler;
mod postgres;
mod races;
mod recovery;
mod redrive;
mod referee;
mod report;
mod retention;
mod scene;
mod server;
mod settings;
mod several;
mod store;
mod store_model;
mod store_postgres;
mod store_twins;
mod sweeps;
mod terminal;
mod tidy;
mod world;
