//! Writes the page of a long trace, for tests in a browser:  long_trace EVENTS FILE

#[path = "../benches/repeated.rs"]
mod repeated;

use std::process::ExitCode;

use repeated::Repeated;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(count), Some(file)) = (words.next().and_then(|word| word.parse().ok()), words.next()) else {
        eprintln!("usage: long_trace EVENTS FILE");
        return ExitCode::from(2);
    };
    let trace = Repeated::new(count);
    let (page, left_out) = trace.page();
    if let Err(error) = std::fs::write(&file, &page) {
        eprintln!("{file}: {error}");
        return ExitCode::from(2);
    }
    println!(
        "{} events, {} bytes; {}",
        trace.count(),
        page.len(),
        left_out.unwrap_or_else(|| "nothing is left out".to_string())
    );
    ExitCode::SUCCESS
}
