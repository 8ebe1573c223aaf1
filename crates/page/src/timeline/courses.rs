//! Courses of CPUs, tasks and sets as columns, clocks' frequencies, and when tasks were throttled.
//!
//! Must not know: how courses are made.

use fairlab_analysis::lanes::{LaneSeries, LaneSums, LanesReport};
use serde_json::{Value, json};

use super::columns::{BlobPiece, PieceBlob, PieceWriter, deflate};

/// Adds the courses of a trace; says where they stand.
pub(super) fn put(blob: &mut PieceBlob, report: &LanesReport) -> Value {
    let start = report.span.0.0;
    let cpus = report.cpus.iter().collect::<Vec<_>>();
    let tasks = report.tasks.iter().map(|task| &task.course).collect::<Vec<_>>();
    let sets = report.sets.iter().map(|set| &set.course).collect::<Vec<_>>();
    let mut of = |courses: &[&LaneSeries]| {
        let piece = blob.put(&deflate(&columns(courses, start)));
        json!({ "at": piece.at, "length": piece.length, "rows": courses.len() })
    };
    json!({ "cpus": of(&cpus), "tasks": of(&tasks), "sets": of(&sets) })
}

fn columns(courses: &[&LaneSeries], start: u64) -> Vec<u8> {
    let mut writer = PieceWriter::default();
    let counts = courses.iter().map(|course| course.entries.len() as u64).collect::<Vec<_>>();
    writer.column(&counts);
    writer.column(&courses.iter().map(|course| course.to.0.saturating_sub(start)).collect::<Vec<_>>());
    let mut from = Vec::new();
    for course in courses {
        let mut before = start;
        for entry in &course.entries {
            from.push(entry.from.0.saturating_sub(before));
            before = before.max(entry.from.0);
        }
    }
    writer.column(&from);
    let column = |of: &dyn Fn(&LaneSums) -> u64| {
        courses.iter().flat_map(|course| &course.entries).map(of).collect::<Vec<_>>()
    };
    writer.column(&column(&|entry| u64::from(entry.slices)));
    writer.column(&column(&|entry| entry.ran));
    writer.column(&column(&|entry| entry.waited));
    writer.column(&column(&|entry| entry.other));
    writer.column(&column(&|entry| u64::from(entry.top)));
    writer.column(&column(&|entry| entry.peak));
    writer.0
}

/// Adds when tasks were throttled: how many spans each has, how far each begins behind the one before, and how long it is.
pub(super) fn put_throttled(blob: &mut PieceBlob, report: &LanesReport) -> Value {
    let mut writer = PieceWriter::default();
    writer.column(&report.tasks.iter().map(|task| task.throttled.len() as u64).collect::<Vec<_>>());
    let (mut from, mut length) = (Vec::new(), Vec::new());
    for task in &report.tasks {
        let mut before = report.span.0;
        for &(begin, end) in &task.throttled {
            from.push(begin.since(before).0);
            length.push(end.since(begin).0);
            before = end;
        }
    }
    writer.column(&from);
    writer.column(&length);
    let BlobPiece { at, length } = blob.put(&deflate(&writer.0));
    json!({ "at": at, "length": length, "rows": from.len() })
}

/// Adds clocks' frequencies; says where they stand.
pub(super) fn put_frequencies(blob: &mut PieceBlob, report: &LanesReport) -> Value {
    let start = report.span.0;
    let mut writer = PieceWriter::default();
    writer.rising(report.frequencies.iter().map(|&(time, ..)| time.since(start).0));
    writer.column(&report.frequencies.iter().map(|&(_, cpu, _)| cpu.0.into()).collect::<Vec<_>>());
    writer.column(&report.frequencies.iter().map(|&(.., khz)| khz.into()).collect::<Vec<_>>());
    let BlobPiece { at, length } = blob.put(&deflate(&writer.0));
    json!({ "at": at, "length": length, "rows": report.frequencies.len() })
}
