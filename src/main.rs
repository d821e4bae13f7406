//! The `tollgate` program.
use clap::Parser;
#[derive(Parser)]
enum Cli {
    Run {
        #[arg(long)]
        config: Option<std::path::PathBuf>,
    },
    Load(tollgate::load::Args),
}
fn main() -> anyhow::Result<std::process::ExitCode> {
    match Cli::parse() {
        Cli::Load(args) => tollgate::load::run(args),
        Cli::Run { config } => {
            let config = match config {
                Some(path) => tollgate::config::Config::load(&path).map_err(|e| anyhow::anyhow!("{e}"))?,
                None => tollgate::config::Config::default_embedded(),
            };
            let gateway = tollgate::host::boot::Gateway::start(&config)?;
            println!("ready {}", gateway.transport);
            loop {
                std::thread::park();
            }
        }
    }
}
