//! Everything that is tested from outside, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests wait, measure, print figures, and are switched by the environment"
)]

mod api;
mod api_faults;
mod api_month;
mod api_profiles;
mod api_rest;
mod breaks;
mod cli;
mod core;
mod corpus;
mod dialects;
mod fake;
mod golden;
mod hostile;
mod infer;
mod intents_sql;
mod interrupts;
mod mariadb;
mod postgres;
mod races;
mod recovery;
mod report;
mod scene;
mod settings;
mod store;
mod store_model;
mod store_postgres;
mod store_twins;
mod sweeps;
mod tidy;
mod world;
