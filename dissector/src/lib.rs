//! See and explain RoCEv2 traffic: dissection, ICRC, and analysis per queue pair.
//!
//! Layers, each of which may use those above it and no other:
//!
//! | module | what it knows |
//! |---|---|
//! | [`wire`] | bytes of the InfiniBand transport: opcodes, headers, PSN, ICRC; `no_std`, no allocation, shared with the kernel program |
//! | [`frame`] | from the link layer down to where BTH starts; the only place that knows etherparse |
//! | [`capture`] | files in and out; the only place that knows pcap-file; knows no protocol |
//! | [`connection`], [`service`] | who talks to whom by what communication management said, and for which protocol |
//! | [`dissect`] | frame to named fields with byte ranges |
//! | `filter` | display filter over those fields |
//! | `flow` | sans-IO analysis: push a packet, read the state; no clock, no file, no thread |
//!
//! Dissection cannot fail: it returns what is there and says where it stopped and why. Only files and
//! the user's own words can be wrong.
#![cfg_attr(not(feature = "std"), no_std)]
// but for capture::mapped, where files are mapped
#![deny(unsafe_code)]

pub mod wire;

#[cfg(feature = "std")]
pub mod capture;
#[cfg(feature = "std")]
pub mod connection;
#[cfg(feature = "std")]
pub mod dissect;
#[cfg(feature = "std")]
pub mod flow;
#[cfg(feature = "std")]
pub mod frame;
#[cfg(feature = "std")]
pub mod service;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod filter;
#[cfg(feature = "cli")]
pub mod output;
