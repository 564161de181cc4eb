//! The program roce-dissect.
fn main() {}
