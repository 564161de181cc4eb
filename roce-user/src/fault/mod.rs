//! The fault engine of roce-fault: from the words of a scenario to rules in the kernel, and from what the
//! kernel reports to a verdict.
//!
//! | module | what it knows |
//! |---|---|
//! | [`words`] | numbers, durations, ranges, prefixes and opcode selections as people write them |
//! | [`rule`] | a rule, and how it is said in a sentence |
//! | [`scenario`] | the TOML file: rules, command, expectations; errors with line and column |
//! | [`lower`] | rules to the tables of the kernel program |

pub mod lower;
pub mod rule;
pub mod scenario;
pub mod words;
