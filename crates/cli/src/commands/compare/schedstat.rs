//! `fairlab compare --schedstat`: what `/proc/schedstat` of two kernels counted, line by line.

use fairlab_recording::system_beside;
use fairlab_verify::schedstat::{
    CounterRow, SchedstatComparison, SchedstatSideAnswer, compare_schedstat, read_schedstat,
};
use serde_json::json;

use crate::args::{AnswerFormat, CompareArgs, PageStyle};
use crate::error::CliError;
use crate::output;
use crate::provenance;

pub fn execute(args: &CompareArgs) -> Result<(), CliError> {
    let [first, second] = &args.schedstat[..] else {
        return Err(CliError::bad(
            format!("--schedstat takes two files or folders, and these are {}", args.schedstat.len()),
            "give --schedstat twice; the first is the baseline",
        ));
    };
    let beside = compare_schedstat(&read_schedstat(first)?, &read_schedstat(second)?);
    let provenance =
        [first, second].iter().fold(provenance::here(), |all, path| all.of_trace(&system_beside(path)));
    match args.experiment.setting.format {
        AnswerFormat::Json => output::answer_json(&provenance, json!(beside)),
        AnswerFormat::Text => {
            let page = args.layout.page();
            page.answer(&provenance, &to_text(&beside, page))
        }
    }
}

/// Counters that neither side counted anything in are left out.
fn to_text(beside: &SchedstatComparison, page: PageStyle) -> String {
    let mut text = String::new();
    for (SchedstatSideAnswer { name, version, jiffies }, side) in beside.sides.iter().zip(["first", "second"])
    {
        let time = jiffies.map_or("since boot".to_string(), |jiffies| format!("{jiffies} jiffies"));
        text += &format!("{side}: {name}, version {version}, {time}\n");
    }
    for sentence in &beside.left_out {
        text += &format!("not compared: {sentence}\n");
    }
    let ratio = if beside.by_jiffy { "ratio by jiffy" } else { "ratio" };
    let counted = beside.rows.iter().filter(|row| row.counts != [0; 2]);
    let rows = counted.map(cells).collect::<Vec<_>>();
    if rows.is_empty() {
        return text + "nothing that both have was counted\n";
    }
    text + "\n" + &page.table(&["line and counter", "first", "second", ratio], 1, &rows)
}

fn cells(row: &CounterRow) -> Vec<String> {
    let cpu = row.cpu.map_or("all".to_string(), |cpu| format!("cpu{cpu}"));
    let level = row.level.map_or(String::new(), |level| format!(" domain{level}"));
    let [first, second] = row.counts.map(|count| count.to_string());
    let ratio = row.ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"));
    vec![format!("{cpu}{level} {}", row.counter), first, second, ratio]
}
