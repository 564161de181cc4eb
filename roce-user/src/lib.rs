//! User side: loader, snapshots, views, fault engine.
pub mod aggregate;
