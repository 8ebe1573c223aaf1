//! tbench for real: each client asks its own server over a socket and waits for the answer, again and again.
//!
//! Facts and options as in the model (`fairlab_sim::workload::tbench`). A message reaches its reader in the sender's own
//! system call. That call wakes the reader with the hint that the sender is about to sleep, as over loopback TCP.
//!
//! Departs from the real program: all tasks are threads of one process. The sockets are local ones, so that no network has to
//! be up. A message is 64 bytes, and sending it takes its real time, whatever `--io-ns` says.
//!
//! Must not know: the engine, how a result reaches a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairlab_event::Ns;
use fairlab_sim::rng::RandomStream;
use fairlab_sim::workload::tbench::TbenchOptions;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use crate::clock::{Clock, ComputePace, sleep};
use crate::messages::{receive, send};
use crate::processes::{RunningTasks, allow_files};
use crate::{LiveConditions, LiveReport};

/// A request or an answer, bytes.
const MESSAGE: usize = 64;

/// What the tasks share.
struct TbenchRun {
    options: TbenchOptions,
    clock: Clock,
    pace: ComputePace,
    seed: u64,
    /// When clients stop, ns on the clock; later than ever until all are there.
    ends: AtomicU64,
    operations: AtomicU64,
}

/// Runs tbench with these arguments (without the program's name).
///
/// # Errors
/// One line that says what is wrong with the arguments (for `--help` the usage text), or what there is no room for.
pub(crate) fn run(
    args: &[String],
    conditions: &LiveConditions<'_>,
    print: &mut dyn FnMut(&str),
) -> Result<LiveReport, String> {
    let options = TbenchOptions::parse(args)?;
    allow_files(2 * u64::from(options.clients) + 64)?;
    let _ = rustix::thread::set_name(c"tbench");
    let bench = Arc::new(TbenchRun {
        options,
        clock: Clock::start(),
        pace: ComputePace::measure(),
        seed: conditions.seed,
        ends: AtomicU64::new(u64::MAX),
        operations: AtomicU64::new(0),
    });
    let mut tasks = RunningTasks::new()?;
    for pair in 0..options.clients {
        pause(&options, pair);
        start_pair(&bench, pair, &mut tasks)?;
    }
    let begins = bench.clock.now();
    bench.ends.store((begins + ms(options.run_ms)).0, Ordering::Relaxed);
    tasks.wait(&bench.clock, conditions.duration, conditions.stop);
    // Who was stopped early leaves, too.
    bench.ends.fetch_min(bench.clock.now().0, Ordering::Relaxed);
    sleep(ms(options.rest_ms));
    Ok(report(&bench, begins, print))
}

fn ms(time: u32) -> Ns {
    Ns::from_ms(u64::from(time))
}

/// Before the first client, and between two of them.
fn pause(options: &TbenchOptions, pair: u32) {
    let time = if pair == 0 { ms(options.start_ms) } else { Ns::from_us(u64::from(options.connect_us)) };
    if time > Ns::ZERO {
        sleep(time);
    }
}

fn start_pair(bench: &Arc<TbenchRun>, pair: u32, tasks: &mut RunningTasks) -> Result<(), String> {
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
        .map_err(|error| format!("cannot make another socket: {error}"))?;
    let shared = Arc::clone(bench);
    tasks.start_thread("tbench_srv", move || i32::from(server(&shared, pair, &far).is_err()))?;
    let shared = Arc::clone(bench);
    tasks.start_thread("tbench", move || i32::from(client(&shared, pair, &near).is_err()))
}

/// Answers until its client has gone.
fn server(bench: &TbenchRun, pair: u32, socket: &OwnedFd) -> Result<(), Errno> {
    let mut random = RandomStream::new(bench.seed, &format!("tbench_srv {pair}"));
    let mut message = [b'-'; MESSAGE];
    while receive(socket, &mut message)? {
        bench.compute(false, &mut random);
        send(socket, &message)?;
    }
    Ok(())
}

/// Asks until the time is over.
fn client(bench: &TbenchRun, pair: u32, socket: &OwnedFd) -> Result<(), Errno> {
    let mut random = RandomStream::new(bench.seed, &format!("tbench {pair}"));
    let mut message = [b'-'; MESSAGE];
    bench.pace.work(Ns::from_us(u64::from(bench.options.load_us)), || bench.is_over());
    while !bench.is_over() {
        bench.compute(true, &mut random);
        send(socket, &message)?;
        if !receive(socket, &mut message)? {
            break;
        }
        bench.operations.fetch_add(1, Ordering::Relaxed);
    }
    shutdown(socket, Shutdown::Write)
}

impl TbenchRun {
    fn is_over(&self) -> bool {
        self.clock.now().0 >= self.ends.load(Ordering::Relaxed)
    }

    fn compute(&self, is_client: bool, random: &mut RandomStream) {
        self.pace.work(self.options.computing_time(is_client, random), || false);
    }
}

fn report(bench: &TbenchRun, begins: Ns, print: &mut dyn FnMut(&str)) -> LiveReport {
    let (options, operations) = (&bench.options, bench.operations.load(Ordering::Relaxed));
    let ran = Ns(bench.ends.load(Ordering::Relaxed)).since(begins);
    let speed = options.megabytes_per_s(operations, ran.as_secs_f64());
    let output = options.output(speed);
    print(&output);
    LiveReport {
        output,
        progress: Some(("operations".to_string(), operations)),
        metrics: vec![("megabytes_per_s".to_string(), speed)],
        elapsed: bench.clock.now(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn clients_are_answered_until_the_time_is_over() {
        let line = "-c 3 --client-us 5 --server-us 5 --start-ms 1 --connect-us 100 --run-ms 50 --rest-ms 5";
        let args = line.split(' ').map(str::to_string).collect::<Vec<_>>();
        let conditions =
            LiveConditions { seed: 1, duration: None, stop: &AtomicBool::new(false), marker: None };
        let report = run(&args, &conditions, &mut |_| ()).expect("it runs");
        let (unit, operations) = report.progress.expect("it counts");
        assert!(unit == "operations" && operations > 0, "{operations}");
        assert!(report.elapsed >= Ns::from_ms(56), "{:?}", report.elapsed);
        assert!(report.output.ends_with("3 clients  3 procs\n"), "{}", report.output);
        // An operation counts 8,000 bytes.
        let per_s = report.metrics[0].1 * 1e6 / 8_000.0;
        assert!((per_s * 0.05 - operations as f64).abs() <= 1.0, "{per_s} {operations}");
    }

    #[test]
    fn who_is_stopped_reports_what_was_done() {
        let args = ["--run-ms", "100000"].map(String::from);
        let stop = AtomicBool::new(false);
        let conditions =
            LiveConditions { seed: 1, duration: Some(Ns::from_ms(40)), stop: &stop, marker: None };
        let report = run(&args, &conditions, &mut |_| ()).expect("it runs");
        assert!(report.elapsed < Ns::from_secs(90) && report.progress.is_some(), "{report:?}");
    }
}
