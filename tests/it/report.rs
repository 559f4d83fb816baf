//! Reports: what a person and a machine are told about a run.
