//! Which events an analysis needs, and what to say when a trace lacks them.

use std::fmt;

use fairlab_event::Tracepoint;

use crate::Census;

/// The events that an analysis works from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The analysis, as the user calls it.
    pub analysis: &'static str,
    /// Without any one of these there is no answer.
    pub required: &'static [Tracepoint],
    /// At least one of these is needed for a whole answer, with what is missing without.
    pub one_of: (&'static [Tracepoint], &'static str),
    /// Each of these adds to the answer, with what is missing without.
    pub useful: &'static [(Tracepoint, &'static str)],
}

/// The trace lacks what the analysis cannot do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEvents {
    /// What was needed.
    pub needs: &'static Needs,
    /// The required events that do not occur.
    pub missing: Vec<Tracepoint>,
    /// What the trace has instead, the most frequent first.
    pub has: Vec<(String, u64)>,
    /// Whether they were recorded, by what is known beside the trace.
    pub recorded: bool,
}

/// The notice about events that a list beside the trace names and that the trace lacks.
const RECORDED: &str = ", though events.txt beside it says that they were recorded (none happened, or this is not the whole trace)";

impl Needs {
    /// Holds `census` against the needs. Gives one clause for each thing that the answer will lack.
    ///
    /// # Errors
    /// A required event does not occur.
    pub fn check(&'static self, census: &Census) -> Result<Vec<String>, MissingEvents> {
        let is_missing = |tracepoint: &Tracepoint| !census.has(*tracepoint);
        let missing: Vec<_> = self.required.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            let has = census.by_count().into_iter().map(|(name, count)| (name.to_string(), count)).collect();
            let recorded = missing.iter().all(|one| census.is_recorded(one.name()));
            return Err(MissingEvents { needs: self, missing, has, recorded });
        }
        let mut notices = Vec::new();
        let (one_of, without) = self.one_of;
        let notice = |any: &[Tracepoint], without: &str| {
            let recorded = if any.iter().any(|one| census.is_recorded(one.name())) { RECORDED } else { "" };
            format!("the trace has no {} events{recorded}: {without}", joined(any, " or "))
        };
        if one_of.iter().all(is_missing) {
            notices.push(notice(one_of, without));
        }
        for (tracepoint, without) in self.useful {
            if is_missing(tracepoint) {
                notices.push(notice(&[*tracepoint], without));
            }
        }
        Ok(notices)
    }
}

fn joined(tracepoints: &[Tracepoint], by: &str) -> String {
    tracepoints.iter().map(|tracepoint| tracepoint.name()).collect::<Vec<_>>().join(by)
}

impl fmt::Display for MissingEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Needs { analysis, required, one_of: (one_of, _), .. } = self.needs;
        let recorded = if self.recorded { RECORDED } else { "" };
        write!(f, "this trace has no {} events{recorded}; ", joined(&self.missing, " and no "))?;
        write!(f, "{analysis} needs {} and {}; ", joined(required, " and "), joined(one_of, " or "))?;
        if self.has.is_empty() {
            return f.write_str("the trace has no events at all");
        }
        f.write_str("the trace has: ")?;
        const SHOWN: usize = 8;
        for (index, (name, count)) in self.has.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name} ({count})")?;
        }
        if self.has.len() > SHOWN {
            write!(f, " and {} more", self.has.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingEvents {}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlab_event::{Comm, Cpu, Event, EventKind, Ns, Pid, Prio, Sink, Switch, System, TaskState};

    const NEEDS: Needs = Needs {
        analysis: "latency",
        required: &[Tracepoint::SchedSwitch],
        one_of: (&[Tracepoint::SchedWakeup, Tracepoint::SchedWaking], "only half is counted"),
        useful: &[(Tracepoint::SchedStatRuntime, "run times are 0")],
    };

    #[test]
    fn what_is_missing_is_named_with_what_there_is() {
        let mut census = Census::default();
        let missing = NEEDS.check(&census).expect_err("nothing there");
        assert_eq!(
            missing.to_string(),
            "this trace has no sched_switch events; latency needs sched_switch and sched_wakeup or sched_waking; \
             the trace has no events at all"
        );
        for _ in 0..3 {
            census.event(&Event::new(Ns(0), Cpu(0), EventKind::Marker { text: "" }));
        }
        census.event(&Event::new(Ns(0), Cpu(0), EventKind::Lost { count: None }));
        let missing = NEEDS.check(&census).expect_err("no switch");
        assert!(missing.to_string().ends_with("the trace has: tracing_mark_write (3), lost_events (1)"));
    }

    /// An event that was switched on and did not happen counts as recorded.
    #[test]
    fn what_was_recorded_beside_the_trace_is_told_apart() {
        let mut census = Census::default();
        census.system(&System { recorded: vec!["sched/*".to_string()], ..System::default() });
        let missing = NEEDS.check(&census).expect_err("nothing there").to_string();
        assert!(missing.contains("no sched_switch events, though events.txt beside it says"), "{missing}");
        let switch = Event::new(Ns(0), Cpu(0), EventKind::SchedSwitch(switch()));
        census.event(&switch);
        let notices = NEEDS.check(&census).expect("a switch");
        assert!(notices.iter().all(|notice| notice.contains("none happened")), "{notices:?}");
    }

    fn switch() -> Switch {
        Switch {
            prev_comm: Comm::default(),
            prev_pid: Pid(1),
            prev_prio: Prio::DEFAULT,
            prev_state: TaskState::RUNNABLE,
            next_comm: Comm::default(),
            next_pid: Pid(2),
            next_prio: Prio::DEFAULT,
        }
    }

    #[test]
    fn what_the_answer_lacks_is_a_notice() {
        let mut census = Census::default();
        census.event(&Event::new(Ns(0), Cpu(0), EventKind::SchedSwitch(switch())));
        assert_eq!(
            NEEDS.check(&census).expect("a switch"),
            [
                "the trace has no sched_wakeup or sched_waking events: only half is counted",
                "the trace has no sched_stat_runtime events: run times are 0"
            ]
        );
    }
}
