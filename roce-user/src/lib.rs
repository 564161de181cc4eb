//! User side: loader, snapshots, views, fault engine.
