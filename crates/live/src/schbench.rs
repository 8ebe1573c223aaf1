//! schbench for real: message threads and workers on this kernel's futexes, printed by the model's main thread.
//!
//! Facts as in the model (`fairlab_sim::workload::schbench`). Departs from the real program: tables and rates both go
//! where the caller prints; the clock is the monotonic one.
//!
//! Must not know: the engine, how a result reaches a user.

mod memory;
#[cfg(test)]
mod protocol;
mod threads;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fairlab_event::Ns;
use fairlab_sim::workload::schbench::{Conductor, MainThreadAction, SchbenchOptions};

use self::memory::SchbenchMemory;
use self::threads::{Diary, ThreadWithDiary, message_thread, spawn};
use crate::clock::Clock;
use crate::{LiveConditions, LiveReport};

/// Runs schbench with these arguments (without the program's name).
///
/// # Errors
/// One line that says what is wrong with the arguments (for `--help` the usage text), or that there is no room for threads.
pub(crate) fn run(
    args: &[String],
    conditions: &LiveConditions<'_>,
    print: &mut dyn FnMut(&str),
) -> Result<LiveReport, String> {
    let mut program = SchbenchRun::new(SchbenchOptions::parse(args)?, conditions.seed, false);
    let outcome = program.main(conditions, print);
    program.tell_to_stop();
    outcome
}

/// The program while it runs.
struct SchbenchRun {
    conductor: Conductor,
    clock: Clock,
    seed: u64,
    memory: Option<Arc<SchbenchMemory>>,
    threads: Vec<Option<ThreadWithDiary>>,
    keeps_diaries: bool,
    diaries: Vec<Diary>,
}

impl SchbenchRun {
    fn new(options: SchbenchOptions, seed: u64, keeps_diaries: bool) -> SchbenchRun {
        SchbenchRun {
            conductor: Conductor::new(options),
            clock: Clock::start(),
            seed,
            memory: None,
            threads: Vec::new(),
            keeps_diaries,
            diaries: Vec::new(),
        }
    }

    fn main(
        &mut self,
        conditions: &LiveConditions<'_>,
        print: &mut dyn FnMut(&str),
    ) -> Result<LiveReport, String> {
        let _ = rustix::thread::set_name(c"schbench");
        loop {
            self.gather();
            let now = self.clock.now();
            let left = conditions.duration.map(|duration| duration.since(now));
            if conditions.stop.load(Ordering::Relaxed) || left == Some(Ns::ZERO) {
                let output = self.conductor.output(now);
                print(&output[self.conductor.taken()..]);
                return Ok(self.report(output));
            }
            let cue = self.conductor.next(now);
            if self.conductor.take_zeroing()
                && let Some(memory) = &self.memory
            {
                memory.zero_statistics();
            }
            print(self.conductor.take_printed());
            match cue {
                MainThreadAction::Create(message) => self.create(message)?,
                MainThreadAction::Sleep(time) => {
                    crate::clock::sleep(left.map_or(time, |left| left.min(time)));
                }
                MainThreadAction::Post(message) => self.post(message),
                MainThreadAction::Join(message) => self.join(message),
                MainThreadAction::Exit => return Ok(self.report(self.conductor.output(now))),
            }
        }
    }

    fn create(&mut self, message: usize) -> Result<(), String> {
        if message == 0 {
            let (workers, requests) = (self.conductor.workers(), self.conductor.requests_per_s());
            let memory =
                SchbenchMemory::new(self.conductor.options(), workers, requests, self.clock, self.seed);
            self.memory = Some(Arc::new(memory));
            self.threads.clear();
        }
        let Some(memory) = self.memory.clone() else { return Ok(()) };
        let diary = Diary(self.keeps_diaries.then(Vec::new));
        self.threads.push(Some(spawn(move || message_thread(&memory, message, diary))?));
        Ok(())
    }

    fn post(&self, message: usize) {
        if let Some(memory) = &self.memory {
            memory.stopping.store(true, Ordering::SeqCst);
            memory.messages[message].futex.post();
        }
    }

    fn join(&mut self, message: usize) {
        if let Some(thread) = self.threads.get_mut(message).and_then(Option::take) {
            self.diaries.extend(thread.join().unwrap_or_default());
        }
        self.conductor.joined(message);
    }

    fn gather(&mut self) {
        if let Some(memory) = &self.memory {
            let (latencies, figures) = memory.gather();
            self.conductor.measured(latencies, figures.into_iter());
        }
    }

    /// Whatever threads there still are end when they come to it: a sleep may be long, so nobody waits for them.
    fn tell_to_stop(&self) {
        (0..self.threads.len()).for_each(|message| self.post(message));
    }

    fn report(&self, output: String) -> LiveReport {
        LiveReport {
            output,
            progress: Some(("requests".to_string(), self.conductor.loops())),
            metrics: self.conductor.metrics(),
            elapsed: self.clock.now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    fn schbench(line: &str, stop: bool) -> (LiveReport, String) {
        testbed::run(run, line, stop)
    }

    #[test]
    fn every_mode_prints_what_the_real_program_does() {
        for (line, ends) in [
            ("-m 1 -t 2 -r 1 -c 1000 -s 100 -w 0 -i 1", "max="),
            ("-m 1 -t 2 -r 1 -p 4096", "avg worker transfer: "),
            ("-m 1 -t 4 -r 1 -c 500 -R 400", "rps: "),
            ("-m 1 -t 2 -r 1 -c 1000 -s 100 --revision 99faedc", "\tmin=0, max="),
        ] {
            let (report, printed) = schbench(line, false);
            assert_eq!(report.output, printed, "{line}");
            assert!(printed.lines().last().is_some_and(|last| last.contains(ends)), "{line}: {printed}");
            assert!(printed.contains("\t*99.0th: "), "{line}: {printed}");
            let (unit, count) = report.progress.expect("a count");
            assert!(unit == "requests" && count > 0, "{line}: {count} {unit}");
            let p99 = report.metrics.iter().find(|(name, _)| name == "schbench_latency_us_p99");
            assert!(
                p99.is_some_and(|(_, us)| printed.contains(&format!("\t*99.0th: {us}"))),
                "{line}: {p99:?}"
            );
        }
    }

    #[test]
    fn a_program_that_is_stopped_prints_what_it_has() {
        let (report, printed) = schbench("-r 0", true);
        assert_eq!(report.output, printed);
        assert!(
            printed.starts_with("Latency percentiles (usec) runtime 0 (s) (0 total samples)"),
            "{printed}"
        );
    }

    #[test]
    fn auto_adds_workers_until_latencies_hurt() {
        // A millisecond of thinking on more workers than CPUs hurts at once or soon.
        let (_, printed) = schbench("-a -m 1 -t 64 -r 1 -c 5000 -s 100", false);
        assert!(printed.starts_with("cputime 5000 threads 64 p99 "), "{printed}");
        assert!(printed.ends_with('\n') && printed.contains("Latency percentiles"), "{printed}");
    }
}
