//! The program roce-dissect.

fn main() -> std::process::ExitCode {
    dissector::cli::main()
}
