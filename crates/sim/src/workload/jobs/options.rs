//! What the command line of the jobs workload asks for.
//!
//! Must not know: what is done with it.

use fairlab_event::Ns;

use crate::workload::Memory;
use crate::workload::arguments::Arguments;

/// What a command line gives.
pub const USAGE: &str = "\
usage: jobs KIND [OPTIONS]
  spin     each job computes, again and again
  yield    each job computes, and offers its CPU after each operation
  sleep    each job computes and waits for a device
  io       as sleep, in a wait that no signal ends and for which the clock is raised
  pairs    each client computes, wakes its server and waits for the answer
  spawn    each job creates children that compute and end, and waits for them
      -n, --jobs N      jobs; of pairs, pairs (1)
      -r, --run-us N    how long an operation computes, give or take a quarter (1000)
      -a, --answer-us N how long the server computes (as long as the client)
      -s, --sleep-us N  how long the device takes, give or take a half (1000)
      -k, --children N  children at a time (1)
      -m, --memory N    which part of computing waits for memory, in thousandths (0); counts on machines with [sharing]
      -w, --working-set N  what each works with, KB (what the machine says of any thread)
";

/// What jobs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
pub struct Options {
    /// What jobs do.
    pub kind: Kind,
    /// How many; of pairs, how many pairs.
    pub jobs: u32,
    /// How long an operation computes.
    pub run: Ns,
    /// How long the server of a pair computes.
    pub answer: Ns,
    /// How long a device takes.
    pub sleep: Ns,
    /// Children at a time.
    pub children: u32,
    /// What each does with memory.
    pub memory: Memory,
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Options, String> {
        let kinds = "spin, yield, sleep, io, pairs or spawn";
        let (kind, args) = args.split_first().ok_or_else(|| format!("name what jobs do: {kinds}"))?;
        let kind = match kind.as_str() {
            "-h" | "--help" => return Err(USAGE.to_string()),
            "spin" => Kind::Spin,
            "yield" => Kind::Yield,
            "sleep" => Kind::Sleep,
            "io" => Kind::Io,
            "pairs" => Kind::Pairs,
            "spawn" => Kind::Spawn,
            other => return Err(format!("'{other}' is none of {kinds}")),
        };
        let (mut jobs, mut run, mut answer, mut sleep, mut children) = (1, 1000, None, 1000, 1);
        let mut memory = Memory::default();
        let mut arguments = Arguments::new(args, USAGE);
        while let Some(name) = arguments.next()? {
            match name {
                "-n" | "--jobs" => jobs = arguments.number(1..=100_000)?,
                "-r" | "--run-us" => run = arguments.number(1..=10_000_000)?,
                "-a" | "--answer-us" => answer = Some(arguments.number(1..=10_000_000)?),
                "-s" | "--sleep-us" => sleep = arguments.number(1..=10_000_000)?,
                "-m" | "--memory" => memory.traffic_permille = arguments.number(0..=1000)?.into(),
                "-w" | "--working-set" => {
                    memory.working_set_kb = Some(arguments.number(0..=100_000_000)?.into());
                }
                "-k" | "--children" => children = arguments.number(1..=1000)?,
                _ => return Err(arguments.unknown()),
            }
        }
        let us = |us: u32| Ns::from_us(us.into());
        let answer = us(answer.unwrap_or(run));
        Ok(Options { kind, jobs, run: us(run), answer, sleep: us(sleep), children, memory })
    }
}
