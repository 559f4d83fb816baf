//! The tables of the README that are made from enums (to be completed).
