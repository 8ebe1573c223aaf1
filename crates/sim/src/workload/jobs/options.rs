//! What the command line of the jobs workload asks for.
//!
//! Must not know: what is done with it.

use std::ops::RangeInclusive;

use fairlab_event::Ns;

use crate::workload::MemoryUse;
use crate::workload::arguments::program;

program! { PROGRAM: JobsOptions, Some, "\
usage: jobs KIND [OPTIONS]
  spin     each job computes, again and again
  yield    each job computes, and offers its CPU after each operation
  sleep    each job computes and waits for a device
  io       as sleep, in a wait that no signal ends and for which the clock is raised
  pairs    each client computes, wakes its server and waits for the answer
  spawn    each job creates children that compute and end, and waits for them";
    "-n, --jobs N" "jobs; of pairs, pairs (1)" |all, value| value.set(&mut all.jobs, 1..=100_000);
    "-r, --run-us N" "how long an operation computes, give or take a quarter (1000)" |all, value| value.time(&mut all.run, US, Ns::from_us);
    "-a, --answer-us N" "how long the server computes (as long as the client)" |all, value| {
        value.time(all.answer.insert(Ns::ZERO), US, Ns::from_us)
    };
    "-s, --sleep-us N" "how long the device takes, give or take a half (1000)" |all, value| value.time(&mut all.sleep, US, Ns::from_us);
    "-k, --children N" "children at a time (1)" |all, value| value.set(&mut all.children, 1..=1000);
    "-m, --memory N" "which part of computing waits for memory, in thousandths (0); counts on machines with [sharing]"
        |all, value| value.set(&mut all.memory.traffic_permille, 0..=1000);
    "-w, --working-set N" "what each works with, KB (what the machine says of any thread)" |all, value| {
        all.memory.working_set_kb = Some(value.number(0..=100_000_000)?);
        Ok(())
    };
}

/// Times of operations, us.
const US: RangeInclusive<u32> = 1..=10_000_000;

/// What jobs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Compute, again and again.
    Spin,
    /// The same, and offer the CPU after each operation.
    Yield,
    /// Compute and wait for a device.
    Sleep,
    /// The same, in a wait that is told to be one for I/O.
    Io,
    /// Clients and servers.
    Pairs,
    /// Create children that compute and end.
    Spawn,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobsOptions {
    /// What jobs do.
    pub kind: JobKind,
    /// How many; of pairs, how many pairs.
    pub jobs: u32,
    /// How long an operation computes.
    pub run: Ns,
    /// How long the server of a pair computes; as long as the client if nothing is said.
    pub answer: Option<Ns>,
    /// How long a device takes.
    pub sleep: Ns,
    /// Children at a time.
    pub children: u32,
    /// What each does with memory.
    pub memory: MemoryUse,
}

impl JobsOptions {
    pub(super) fn parse(args: &[String]) -> Result<JobsOptions, String> {
        let kinds = "spin, yield, sleep, io, pairs or spawn";
        let ms = Ns::from_ms(1);
        let mut options = JobsOptions {
            kind: JobKind::Spin,
            jobs: 1,
            run: ms,
            answer: None,
            sleep: ms,
            children: 1,
            memory: MemoryUse::default(),
        };
        let operands = PROGRAM.read(args, &mut options)?;
        let kind = operands.first().ok_or_else(|| format!("name what jobs do: {kinds}"))?;
        if let Some(word) = operands.get(1) {
            return Err(format!("'{word}' is one word too many"));
        }
        options.kind = match kind.as_str() {
            "spin" => JobKind::Spin,
            "yield" => JobKind::Yield,
            "sleep" => JobKind::Sleep,
            "io" => JobKind::Io,
            "pairs" => JobKind::Pairs,
            "spawn" => JobKind::Spawn,
            other => return Err(format!("'{other}' is none of {kinds}")),
        };
        Ok(options)
    }
}
