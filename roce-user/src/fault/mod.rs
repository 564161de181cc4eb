//! The fault engine of roce-fault: from the words of a scenario to rules in the kernel, and from what the
//! kernel reports to a verdict.
//!
//! | module | what it knows |
//! |---|---|
//! | [`words`] | numbers, durations, ranges, prefixes and opcode selections as people write them |
//! | [`rule`] | a rule, and how it is said in a sentence |
//! | [`scenario`] | the TOML file: rules, command, expectations; errors with line and column |
//! | [`lower`] | rules to the tables of the kernel program |
//! | [`engine`] | load, attach, arm, and what comes back |
//! | [`command`] | the command under test |
//! | [`judge`] | expectations against evidence; pure |
//! | [`report`] | words, JSON, JUnit, pcapng |
//! | [`lock`], [`login`] | one roce-fault an interface, and not on the one that carries the login |
//! | [`run`] | all of it in order |

pub mod command;
pub mod engine;
pub mod judge;
pub mod lock;
pub mod login;
pub mod lower;
pub mod report;
pub mod rule;
pub mod run;
pub mod scenario;
pub mod words;
