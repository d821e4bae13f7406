//! The `tollgate` program.
fn main() -> anyhow::Result<()> {
    let config = match std::env::args().nth(2) {
        Some(path) => tollgate::config::Config::load(std::path::Path::new(&path)).map_err(|e| anyhow::anyhow!("{e}"))?,
        None => tollgate::config::Config::default_embedded(),
    };
    let gateway = tollgate::host::boot::Gateway::start(&config)?;
    println!("ready {}", gateway.transport);
    loop {
        std::thread::park();
    }
}
