//! Where the waiting task and the runner stood in virtual time, in words.
//!
//! Must not know: the rest of the story.

use std::fmt;

use super::SecondsCutToMicroseconds;
use crate::columns::ms;
use crate::explain::placement::{ExplainedPlacement, deadline_ahead, group_weight, virtual_distance};
use crate::explain::story::{NamedPid, VirtualTime};

/// A number of virtual nanoseconds as milliseconds or seconds.
fn virtual_length(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000 => format!("{nanoseconds} ns"),
        1_000_000..10_000_000_000 => format!("{} ms", ms(nanoseconds)),
        _ => format!("{:.1} s", nanoseconds as f64 / 1e9),
    }
}

impl VirtualTime {
    /// Adds the view's lines.
    pub(super) fn print(&self, f: &mut fmt::Formatter<'_>, waiter: NamedPid) -> fmt::Result {
        writeln!(f, "   In virtual time:")?;
        if let Some(placement) = &self.waiter {
            print_placement(f, waiter, placement)?;
        }
        if let Some((time, vruntime)) = self.runner_vruntime {
            write!(
                f,
                "     {} stood at vruntime {vruntime} (at {})",
                self.runner,
                SecondsCutToMicroseconds(time)
            )?;
            if let Some((time, vruntime)) = self.runner_vruntime_at_end {
                write!(f, ", at {vruntime} at {}", SecondsCutToMicroseconds(time))?;
            }
            writeln!(f, ".")?;
        }
        self.print_gap(f, waiter)?;
        self.print_levels(f, waiter)
    }

    fn print_gap(&self, f: &mut fmt::Formatter<'_>, waiter: NamedPid) -> fmt::Result {
        let Some((_, runner)) = self.runner_vruntime else { return Ok(()) };
        let Some(stood) = self.waiter_vruntime() else { return Ok(()) };
        if self.waiter.is_none() {
            writeln!(
                f,
                "     {waiter} stood at vruntime {stood}, reckoned back from its first accounting afterwards."
            )?;
        }
        let gap = virtual_distance(runner, stood);
        if gap == 0 {
            return writeln!(f, "     {waiter} stood level with {} ({stood}).", self.runner);
        }
        let (length, way) = (virtual_length(gap.unsigned_abs()), if gap >= 0 { "behind" } else { "before" });
        write!(
            f,
            "     {waiter} stood {length} of virtual time {way} {} ({stood} against {runner})",
            self.runner
        )?;
        match self.time_to_close() {
            Some(time) => writeln!(f, "; {} of its CPU time would close that.", virtual_length(time.0)),
            None => writeln!(f, "."),
        }
    }

    fn print_levels(&self, f: &mut fmt::Formatter<'_>, waiter: NamedPid) -> fmt::Result {
        let (Some(of_waiter), Some(of_runner)) = (self.waiter_groups, self.runner_groups()) else {
            return Ok(());
        };
        if of_waiter == of_runner {
            if of_waiter > 0 {
                writeln!(
                    f,
                    "     Both were placed below {of_waiter} group entities; the trace does not tell whether in one group."
                )?;
            }
            return Ok(());
        }
        if self.gap().is_none() {
            return Ok(());
        }
        let runner = self.runner;
        writeln!(
            f,
            "     But these numbers cannot be compared: {runner} was placed with {of_runner} group entities above it, {waiter} \
             with {of_waiter}; they belong to different queues and meet at the root only."
        )?;
        let Some(placement) = &self.runner_placement else { return Ok(()) };
        self.print_root(f, waiter, placement)
    }

    /// At the root the runner is represented by its topmost group.
    fn print_root(
        &self,
        f: &mut fmt::Formatter<'_>,
        waiter: NamedPid,
        runner: &ExplainedPlacement,
    ) -> fmt::Result {
        let (Some(own), Some(root)) = (runner.own(), runner.levels.last()) else { return Ok(()) };
        if runner.groups() == 0 || self.waiter_groups != Some(0) {
            return Ok(());
        }
        write!(
            f,
            "     There the group of {} was placed at vruntime {} at {}",
            self.runner,
            root.sev,
            SecondsCutToMicroseconds(runner.time)
        )?;
        if let Some(ahead) = deadline_ahead(root) {
            write!(f, ", its deadline {} ahead ({})", virtual_length(ahead), root.sed)?;
        }
        match group_weight(root, own).filter(|_| self.runner_prio.nice() == Some(0)) {
            Some(weight) => writeln!(f, ": a weight of about {weight}.")?,
            None => writeln!(f, ".")?,
        }
        for reweight in runner.reweights.iter().filter(|reweight| reweight.depth == 0) {
            let ((before, after), (deadline, new)) = (reweight.weight, reweight.deadline);
            write!(
                f,
                "     At {} its weight went from {before} to {after}",
                SecondsCutToMicroseconds(reweight.time)
            )?;
            match deadline == new {
                true => writeln!(f, ", and the deadline stayed where it was.")?,
                false => writeln!(f, ", and the deadline to {new}.")?,
            }
        }
        let Some(placed) = self.waiter.as_ref().filter(|placement| placement.groups() == 0) else {
            return Ok(());
        };
        let Some(stood) = placed.own() else { return Ok(()) };
        if stood.nr != 1 || placed.cpu != runner.cpu {
            return Ok(());
        }
        // With one entity on the queue the average is where it stands.
        let behind = virtual_distance(stood.avg, stood.sev);
        let left = virtual_distance(stood.avg, root.sed);
        if behind > 0 && left > 0 {
            writeln!(
                f,
                "     When {waiter} was placed that group was alone on the queue, so the average {} is where it stood: {} \
                 before {waiter}, which it passes soon. But the tick asks for a reschedule only when the runner's deadline \
                 has passed, and that was {} of virtual time away unless the group was reweighted.",
                stood.avg,
                virtual_length(behind.unsigned_abs()),
                virtual_length(left.unsigned_abs())
            )?;
        }
        Ok(())
    }
}

fn print_placement(
    f: &mut fmt::Formatter<'_>,
    waiter: NamedPid,
    placement: &ExplainedPlacement,
) -> fmt::Result {
    let Some(own) = placement.own() else { return Ok(()) };
    write!(
        f,
        "     {waiter} was placed at {} at vruntime {}",
        SecondsCutToMicroseconds(placement.time),
        own.sev
    )?;
    if let Some(ahead) = deadline_ahead(own) {
        write!(f, ", deadline {} ({} ahead)", own.sed, virtual_length(ahead))?;
    }
    write!(f, ", lag {}", own.sel)?;
    if own.nr == 0 {
        return writeln!(f, ", on an empty queue.");
    }
    if deadline_ahead(own).is_none() {
        return writeln!(f, "; min_vruntime of its queue was {}.", own.min);
    }
    let behind = virtual_distance(own.avg, own.sev);
    if behind > 0 {
        let behind = virtual_length(behind.unsigned_abs());
        writeln!(
            f,
            ": {behind} behind the average of its queue, {}: not eligible, so its wakeup preempts no task.",
            own.avg
        )
    } else {
        writeln!(f, "; the average of its queue was {}.", own.avg)
    }
}
