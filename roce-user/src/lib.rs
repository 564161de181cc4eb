//! User side: loader, snapshots, views, fault engine.
pub mod aggregate;
pub mod error;
pub mod iface;
pub mod load;
