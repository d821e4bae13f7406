//! The `tollgate` program.

mod cli;

use tollgate::host::large::LargeTables;

#[global_allocator]
static MEMORY: LargeTables = LargeTables;

fn main() -> std::process::ExitCode {
    cli::main()
}
