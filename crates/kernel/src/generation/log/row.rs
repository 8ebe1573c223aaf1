//! What rows of the log are written in: their form, their dates, effects by room, and reasons that several give.
//!
//! Must not know: any row.

pub(super) use crate::balance::rules::*;
pub(super) use crate::core::rules::*;
pub(super) use crate::cpufreq::rules::*;
pub(super) use crate::domain::rules::*;
pub(super) use crate::fair::bandwidth::rules::*;
pub(super) use crate::fair::preemption_rules::*;
pub(super) use crate::fair::rules::*;
pub(super) use crate::fair_server::rules::*;
pub(super) use crate::generation::change::ChangeEffect::*;
pub(super) use crate::generation::change::{ChangeEffect, LoggedCommit};
use crate::generation::date::{Date, DatedBy};
pub(super) use crate::generation::feature::Feature;
pub(super) use crate::generation::matters_with::MattersWith::*;
pub(super) use crate::generation::tunable::Tunable;
pub(super) use crate::group::rules::*;
pub(super) use crate::pelt::rules::*;
pub(super) use crate::rt::rules::*;
pub(super) use crate::select::rules::*;

/// One commit: id, date, short name, subject, what it changes. Its release is that of the file.
pub(super) const fn commit(
    commit: &'static str,
    date: Option<Date>,
    name: &'static str,
    subject: &'static str,
    effects: &'static [ChangeEffect],
) -> LoggedCommit {
    LoggedCommit { commit, name, release: None, date, subject, effects }
}

/// A date that the commit's own mail or the log of a push says.
pub(super) const fn git(text: &'static str) -> Option<Date> {
    Some(Date { text, by: DatedBy::Git })
}

/// A date that a public page says.
pub(super) const fn page(text: &'static str) -> Option<Date> {
    Some(Date { text, by: DatedBy::Page })
}

/// A date and a place from memory.
pub(super) const fn memory(text: &'static str) -> Option<Date> {
    Some(Date { text, by: DatedBy::Memory })
}

/// The date of what was never committed.
pub(super) const NEVER: Option<Date> = None;

// Why several commits are not modelled.
pub(super) const SCALED_PERIOD: &str =
    "periods that a timer cannot keep up with: virtual time stands still in an interrupt";
pub(super) const RACE: &str = "a race between CPUs: the model takes one step after the other";
pub(super) const HRTICK_BEFORE: &str =
    "timers that end slices, as they are before 9213aa4784cf turns them on by default";
