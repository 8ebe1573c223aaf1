//! docs/fidelity.md is what the policy functions say of themselves: which kernel function each stands for, in which
//! variants, and where it departs. `BLESS=1 cargo test -p fairlab-house --test it fidelity_page` writes it.
//!
//! Must not know: what the figures on that page say. They stand between marks, and the measuring commands write them.

use std::fmt::Write;
use std::path::Path;

use fairlab_house::{FileScope, files, root, text};

/// One function's labels.
struct Labelled {
    file: String,
    function: String,
    kernel: String,
    variants: String,
    departs: String,
}

const LABELS: [&str; 4] = ["Kernel:", "Variants:", "Units:", "Departs:"];

/// The documented functions of one file that name a kernel function.
fn labelled(file: &str, source: &str) -> Vec<Labelled> {
    let mut found = Vec::new();
    let mut doc = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(sentence) = line.strip_prefix("///") {
            doc.push_str(sentence);
        } else if !line.starts_with("#[") {
            let function =
                line.split_once("fn ").map(|(_, rest)| rest.split(['(', '<']).next().unwrap_or_default());
            if let (Some(function), Some(kernel)) = (function, label(&doc, "Kernel:")) {
                let of = |name| label(&doc, name).unwrap_or_default();
                let (variants, departs) = (of("Variants:"), of("Departs:"));
                let (file, function) = (file.to_string(), function.to_string());
                found.push(Labelled { file, function, kernel, variants, departs });
            }
            doc.clear();
        }
    }
    found
}

/// What follows a label, up to the next one.
fn label(doc: &str, name: &str) -> Option<String> {
    let (_, after) = doc.split_once(name)?;
    let end = LABELS.iter().filter_map(|label| after.find(label)).min().unwrap_or(after.len());
    Some(without_links(after[..end].trim().trim_end_matches('.')).replace('|', "\\|"))
}

/// Links between items lead nowhere outside the source: their words are kept.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(&before.replacen('[', "", 1));
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

/// The parts of the page that are measured or written by hand, each under its heading and with what is said of it.
const KEPT: [(&str, &str, &str); 6] = [
    (
        "oracle",
        "Agreement with the code of real releases",
        "Written by `fairlab fidelity --oracle --page docs/fidelity.md --part oracle`; `make oracle` makes twenty times as many \
         runs.\n\n\
         A release's own `kernel/sched/` runs in the engine, and its model gets every call at the same instant \
         ([own code](native.md)). After each call the state of every CPU that it touched is compared: running tasks, queues, \
         virtual times, averages, what balancing remembers. The model learns nothing from the tree. A run is alike if nothing \
         differs to its end. The first difference ends a run's comparison, so the second table counts only what came before.\n\n\
         There are sixteen named workloads, on 4, 40, 80 and 192 CPUs. A random case draws a machine of 2 to 256 CPUs and its \
         threads, with groups, quotas, weights, nice levels, policies and affinity. Kernel work takes no time.",
    ),
    (
        "trees",
        "Agreement with the code of public trees",
        "Written by hand: releases that Debian's archive does not keep, and 7.3.4. `fairlab fidelity --oracle src:DIR --cases 100` makes such a row, with fair servers off: sixteen workloads on the four machines, and random cases of seeds 1 to 100. Those of 5.15.24 and 7.1.5 have seeds from 5000 or 7000 on, by `fairlab verify --against src:DIR`: the probes do not propose `util-est-in-update`, which 7.1.5 has.",
    ),
    (
        "shipped",
        "Agreement with the recordings in testdata/recordings",
        "`cargo test -p fairlab-verify --test it fidelity` fails when any figure falls below these.\n\n\
         A decision is judged where the recording shows all that the model's answer rests on:\n\n\
         * with probes, where entities stand, how heavy they are, and what a selection of a CPU finds. A running group's entity \
         is charged whenever something joins or leaves its queue: where no probe shows the runqueue's clock then, nothing that hangs \
         on it is judged until it is shown;\n\
         * without probes, up to v6.5, who runs: each charge prints a task's vruntime. Groups' entities print nothing;\n\
         * from v6.6 on no event says where entities stand, so that without probes nothing but charges is judged;\n\
         * balancing reads queues without their locks, and nothing shows what it finds: it is never judged.\n\n\
         [Own code](native.md) is compared in all of these, member by member.",
    ),
    (
        "earlier",
        "What an earlier walk found",
        "Until November 2026 the walk also judged decisions whose state a recording hides. It asked the model for each combination \
         of what might have been, such as loads, hints and unseen clocks. *Agree* meant that all of them gave the kernel's answer, \
         *admissible* that some did, *missed* that none did. The comparison with trees' own code found a dozen wrong rules in the \
         days in which this walk found none. So what it guessed is not judged any more. These were its last sums over the same \
         recordings, and over 149 of Ubuntu's and mainline kernels.",
    ),
    (
        "booted",
        "Whole runs beside booted kernels",
        "Written by `fairlab fidelity --booted --boots testdata/booted --page docs/fidelity.md --part booted`.\n\n\
         One workload runs on Debian's kernel in QEMU, on the model, and on the code of Debian's sources of that release \
         ([own code](native.md)). It runs on two CPUs (periodic, weights, nice) or four (hackbench, schbench). testdata/booted \
         keeps the results of booted kernels; without `--boots` they are booted again. The table below is older than the columns \
         of the own code and of the model's last changes: the command has not been run on all of it since.\n\n\
         * **Machine.** Model and own code have costs that were measured in a guest, and CPUs that take turns as QEMU's do \
         ([boot](boot.md)).\n\
         * **Runs.** Each kernel is booted three times per workload; the seed delays the workload's start by up to 100 ms. Model \
         and own code make 27 runs each, which begin on the CPUs of the booted runs. Means are compared.\n\
         * **Waits** are compared in ticks. A difference is a share of the booted kernel's wait, or of a tick if that is longer. \
         Waits of a millisecond or more are also compared as they are.\n\
         * **Rates** are compared with the booted kernel's rate. Below 45 events in all boots, chance alone moves a rate by \
         15 %, so the difference is then a share of 45 events.\n\n\
         *own code is* nearer to the booted kernel than the model, or further, if their runs differ significantly (all rows are \
         one family) and their errors differ by more than 1 %; else *alike*. *missed*: own code is more than 15 % off. Own code \
         decides as the kernel does, since it is the kernel's; machine, costs and turns come from the model. So if both are off \
         alike, time is wrong and not a decision. This is so under hackbench.\n\n\
         The effect of a kernel change is the difference between two kernels. So the command also compares each metric from one \
         kernel to the next, and from the first to the last, booted and modelled: ratios of geometric means with 95 % intervals. \
         Whether a side falls, rises or stays (within 1 %) is judged as in every comparison ([statistics](statistics.md)): runs \
         do not pair, and all contrasts of a side are one family. Three boots against three show only effects that are large \
         beside their scatter. They vary only the start of the workload, so no interval covers another build of the guest.\n\n\
         * *same*: both go one way for sure; *opposite*: they go opposite ways; *missed*: only one of them moves for sure.\n\
         * *off*: the factor between the two ratios, less 1; beside it the factor for a model that knows no change.\n\
         * Waits under a millisecond under both kernels are costs of kernel work, which is measured for each kernel. If these \
         change alike, that says little about the scheduler.\n\n\
         What remains different:\n\n\
         * **nice.** Which tasks share a CPU is settled early and stays. Under 6.12 nice -10 got 30 % in one of three boots and \
         44 % in another; in the model mostly 30 %.\n\
         * **weights.** Its rates are small, so chance is a large part of them.\n\
         * **hackbench.** On four CPUs a receiver either preempts a sender at each message, or reads many at the end of its \
         slice; small times decide which. Under 5.10, 6.1 and 6.12 the model's receivers preempt more often, with 42, 29 and 27 % more \
         switches. Boots of one kernel scatter by a quarter: 28,000 to 46,000 switches/s under 7.2. A sender on another CPU is preempted \
         sooner in the model: in the median 6 us after the wakeup, under 5.10 it is 12.\n\n\
         [Notes on booted runs](notes/booted-runs.md) say why workloads begin as they do, and what earlier errors were.",
    ),
    ("missed", "What is still missed, and why", "Written by hand, about the decisions on which task runs."),
];

fn page(written: &str) -> String {
    let mut page = String::from(
        "# Fidelity: how far the model agrees with real kernels, and where it departs from them\n\n\
         `fairlab verify` walks a recording decision by decision. It asks the model for its decision in the kernel's state, compares it \
         with what the kernel did, and then applies what the kernel did. A decision is one of these:\n\n\
         * *agree*: the model's answer is the kernel's, to the last unit of a number;\n\
         * *missed*: it is another one;\n\
         * *not judged*: the recording does not show the state that the decision rests on, or what the kernel did.\n\n\
         In the tables of recordings 12 means that all twelve agree. 11/12: one does not.\n\n",
    );
    for (part, heading, about) in KEPT {
        let (begin, end) = (format!("<!-- figures: {part} -->"), format!("<!-- end of figures: {part} -->"));
        let kept = written.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
        let kept = kept.map_or("\n", |(kept, _)| kept);
        let _ = writeln!(page, "## {heading}\n\n{about}\n\n{begin}{kept}{end}\n");
    }
    page += "## Which kernel function each rule models\n\n\
         Collected from the labels of the policy functions in `crates/kernel/src`; a test keeps it fresh.\n\n\
         | function | kernel | variants | departs |\n|---|---|---|---|\n";
    let sources = files(FileScope::Present).into_iter().filter(|file| file.starts_with("crates/kernel/src/"));
    for file in sources.filter(|file| file.ends_with(".rs")) {
        for entry in labelled(&file, &text(&file)) {
            let room = entry.file.trim_start_matches("crates/kernel/src/");
            let Labelled { function, kernel, variants, departs, .. } = entry;
            let _ = writeln!(page, "| `{room}` `{function}` | {kernel} | {variants} | {departs} |");
        }
    }
    page
}

#[test]
fn the_page_is_fresh() {
    let path = root().join("docs/fidelity.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page(&written)).expect("written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(&written),
        "docs/fidelity.md is stale: BLESS=1 cargo test -p fairlab-house --test it fidelity_page"
    );
}

#[test]
fn figures_are_kept() {
    let fresh = page("");
    let measured = fresh.replace("<!-- figures: shipped -->\n", "<!-- figures: shipped -->\n\n12 of 12\n");
    assert_ne!(measured, fresh);
    assert_eq!(page(&measured), measured);
}

#[test]
fn labels_are_found() {
    let source = "/// Does it.\n///\n/// Kernel: `place_entity()`, fair.c. Variants: `Lag` from v6.6.\n/// Departs: nothing of it.\n#[inline]\npub fn place(&self) {}\n";
    let found = labelled("a.rs", source);
    let [entry] = &found[..] else { panic!("one function is labelled") };
    assert_eq!((entry.function.as_str(), entry.kernel.as_str()), ("place", "`place_entity()`, fair.c"));
    assert_eq!((entry.variants.as_str(), entry.departs.as_str()), ("`Lag` from v6.6", "nothing of it"));
    assert!(Path::new(&entry.file).ends_with("a.rs") && labelled("b.rs", "fn plain() {}\n").is_empty());
}
