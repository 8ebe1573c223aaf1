//! Carries a workload out: `live schbench -m 1 -t 4 -r 5`. Links statically, too:
//! `RUSTFLAGS='-C target-feature=+crt-static' cargo build -p fairlab-live --example live --target x86_64-unknown-linux-gnu`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use fairlab_live::{LiveConditions, carry_out};
use fairlab_sim::workload::Workload;
use fairlab_sim::workload::jobs::Jobs;

fn build(command: &[String]) -> Result<Box<dyn Workload>, String> {
    match command {
        [name, args @ ..] if name == "jobs" => Ok(Box::new(Jobs::parse(args)?)),
        _ => Err("known are schbench, hackbench, pipe, jobs, and cgroup before one of them".to_string()),
    }
}

fn main() -> ExitCode {
    let command = std::env::args().skip(1).collect::<Vec<_>>();
    let conditions = LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(false), marker: None };
    let mut print = |text: &str| {
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    match carry_out(&command, &conditions, &build, &mut print) {
        Ok(_) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}
