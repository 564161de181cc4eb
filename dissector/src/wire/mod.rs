//! The InfiniBand transport as bytes: the opcode table, one file a header, PSN arithmetic, the ICRC.
//!
//! Rules of a header file: layout, `LEN`, a view over exactly `LEN` bytes made by one checked constructor
//! (`split`), getters that cannot fail after that, `Fields` with `emit` for making packets, tests. All
//! multi-byte fields are big-endian on the wire and host integers in the API.
//!
//! Nothing here allocates, formats or panics: the module compiles into the kernel program.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used))]

pub mod aeth;
pub mod atomiceth;
pub mod bits;
pub mod bth;
pub mod bytes;
pub mod cm;
pub mod deth;
pub mod feth;
pub mod grh;
pub mod icrc;
pub mod ids;
pub mod immdt;
pub mod lrh;
pub mod mad;
pub mod opcode;
pub mod outer;
pub mod packet;
pub mod psn;
pub mod reth;

pub use aeth::{Aeth, NakCode, Syndrome};
pub use atomiceth::{AtomicAckEth, AtomicEth};
pub use bits::Bits;
pub use bth::{Bth, BthFields};
pub use bytes::Short;
pub use deth::{Deth, Rdeth, XrcEth};
pub use feth::Feth;
pub use grh::Grh;
pub use ids::{PKey, Qpn};
pub use immdt::{Ieth, ImmDt};
pub use lrh::Lrh;
pub use mad::Mad;
pub use opcode::{Class, Header, Kind, Op, Position, Role, Transport};
pub use packet::{Packet, Stop};
pub use psn::Psn;
pub use reth::Reth;

/// UDP destination port of RoCEv2 (IANA "rocev2", IBTA annex A17).
pub const ROCE_UDP_PORT: u16 = 4791;
/// EtherType of RoCEv1 (IBTA annex A16).
pub const ETHERTYPE_ROCE_V1: u16 = 0x8915;
