//! docs/fidelity.md is what the policy functions say of themselves: which kernel function each stands for, in which
//! variants, and where it departs. `BLESS=1 cargo test -p fairlab-house --test fidelity_page` writes it.
//!
//! Must not know: what the figures on that page say; they stand between marks, and whoever measures writes them.

use std::fmt::Write;
use std::path::Path;

use fairlab_house::{Scope, files, root, text};

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
        "Written by `fairlab fidelity --oracle --page docs/fidelity.md --part oracle`; `make oracle` makes twenty times as many runs. A release's own `kernel/sched/` runs in the engine, and its model gets every call that the \
         tree gets, at the same instant ([native.md](native.md)). After each, all that both hold of each CPU it touched is \
         compared: who runs, queues, virtual times, averages, what balancing remembers. Nothing is learned, nothing is hidden. \
         A run is alike if nothing differs to its end. At the first difference a run's comparison ends, so the second table \
         counts only what came before. Named workloads are sixteen, on 4, 40, 80 and 192 CPUs; cases by chance draw a machine of \
         2 to 256 CPUs and what threads do there: groups, quotas, weights, nice levels, policies, affinity. Kernel work takes no time here.",
    ),
    (
        "shipped",
        "Agreement with the recordings in testdata/recordings",
        "What the model must keep: `cargo test -p fairlab-verify --test fidelity` fails when any figure falls below these. \
         A wakeup's CPU is asked for in every combination of what no event shows: whether the waker promises to sleep, how often both \
         have woken others, hints of idle cores, how far a search goes, the CPU used before the last one, and loads as far as they are \
         known. One with more than 128 such states is not judged. A test walks with other values of these before the trace, and none \
         that agreed is missed. Still taken as the likeliest: when blocked load is aged on idle CPUs, what other classes leave of a CPU, and what a \
         task's own utilization is where energy decides. For balancing, the order of lists after passes that nothing shows, and how often a level \
         has failed (nr_balance_failed), which decides what source will do. For accounting, that a task's nice level or policy was changed unseen \
         where only that explains a charge. Agreement that hangs on those may still be luck.",
    ),
    (
        "collection",
        "Agreement with a larger collection",
        "Written by `make fidelity TRACES=DIR`, each recording by the rules of its own kernel.",
    ),
    (
        "kernels",
        "Agreement with kernels of most releases",
        "Written by `scripts/record-kernels target/release/fairlab DIR && target/release/fairlab fidelity DIR --brief --page docs/fidelity.md --part kernels`: \
         seven workloads, recorded under Ubuntu's kernels in QEMU; 7.3, which is in no release of theirs yet, by the path of its image. A kernel whose lines \
         count fewer than seven recordings has not been recorded whole. *who runs*: virtual runtimes, placement, picks, preemption, lag, \
         delayed dequeues; *where it wakes up*: the CPU of each woken and new task; *balancing*: from which queue it takes which task, and with probes \
         whether each try finds something.",
    ),
    (
        "booted",
        "Whole runs beside booted kernels",
        "Written by `fairlab fidelity --booted --boots testdata/booted --page docs/fidelity.md --part booted`: one workload on \
         Debian's kernel in QEMU, on the model, and on the own code of Debian's sources of that release ([native.md](native.md)), on two \
         CPUs (periodic, weights, nice) or four (hackbench, schbench). What booted kernels did is kept in testdata/booted; without \
         `--boots` they are booted again. The table below is older than the columns of the own code and of the model's last changes: the command \
         has not been run on all of it since. The machine of the model and of the own code has \
         the costs that were measured in a guest, and its CPUs take turns as QEMU's do ([boot.md](boot.md)). Waits \
         are compared in ticks: a difference is a share of the booted kernel's wait, or of a tick if that is longer; those of a \
         millisecond or more also as they are. A rate is compared with the booted kernel's, or with that of 45 events in all \
         boots if that is higher, which chance alone moves by 15 %. Each kernel is booted three times under each workload, which \
         then starts up to 100 ms later, as the seed has it; of the model and of the own code there are 27 runs each, which begin on the CPUs on \
         which those began. Compared are means.\n\n\
         *own code is*: nearer to the booted kernel than the model, or further, where the runs of the two differ for sure (all rows are one family) and their \
         errors by more than 1 %; else alike. *missed*: hackbench's waits, switches and migrations are more than 15 % off by own code. \
         Own code decides as the kernel does, since it is the kernel's; it has the machine, its costs and its turns from the model. So where \
         both are off alike, time is, not a decision: under hackbench both are.\n\n\
         What a change of the kernel does is the difference between two of them, so the command compares differences, too: each metric \
         from one kernel to the next, and from the first to the last, booted and modelled, as ratios of geometric means with their \
         95 % intervals. Whether a side falls, rises or stays (within 1 %) is told as in every comparison \
         ([statistics.md](statistics.md)): runs do not pair, all contrasts of a side are one family. Three boots against three see \
         only what is large beside their scatter, and they differ in nothing but when the workload starts: what another build of \
         the guest would change is in no interval. *same*: the model goes the same way for sure; *opposite*; *missed*: one of the \
         two moves for sure, the other does not. *off* is the factor, less 1, between the two ratios; it is said beside that of \
         a model that knows of no change. Waits shorter than a millisecond under both kernels are the cost of the kernel's own work, which is \
         measured for each kernel: that they change alike says little about the scheduler.\n\n\
         What is compared must not hang on the first moments. A workload begins with a process that has not woken many others \
         lately. Tasks of `weights` and `nice` begin together once all are in their groups: on a real kernel the first write into a \
         group waits for tens of ms. Periods of `periodic` are 10, 10.37 and 10.74 ms: three tasks that always wake up at once move \
         as their first meetings decided, 93 times a second under 6.1 with one build of the guest's program, 137 with another.\n\n\
         A booted kernel also remembers what searches for work cost while it started, when CPUs of an emulator wait for each other \
        for ms: with that, single CPUs did not search at all, others each time, as it happened to be in one build of the guest's \
        program or another. hackbench switched 35,000 or 22,600 times a second under 6.12, a task of nice 19 had 0.46 % of both \
        CPUs under 6.1, where the model gives it 2.1 %. Now domains are built anew before a workload ([boot.md](boot.md)). And \
        CPUs that go idle keep their tick once from f4c31b07b136 on, which 6.1, 6.12 and 7.2 have: a tick that finds a CPU idle \
        balances for it. By both, the greatest error of waits went from 52 to 24 %, that of migrations from 201 to 45 %, and the \
        median errors of switches and migrations from 6.2 and 14.2 % to 2.5 and 8.3 %.\n\n\
        Turns and costs are measured by themselves, in guests, and not by these runs. Until both were measured again ([boot.md](boot.md)), \
        the model's first of four CPUs was the fastest, where it is the third, and a sender was charged what its receiver is. On one CPU \
        hackbench took twice as long as booted under 6.12, and takes 4 to 12 % less under each of the four now; on four CPUs it switched half \
        as often as booted under 7.2, and now as often. schbench's median wait went from 6, 14 and 18 us under 5.10, 6.12 and 7.2, \
        where it is 14, 25 and 28 us, to 13, 25 and 25 us.\n\n\
        What is left: which tasks of `nice` share a CPU settles early and stays, in one way of several; under 6.12 nice -10 got \
        30 % in one of three boots and 44 % in another of an earlier comparison, in the model 30 % in most runs. Where a rate is small \
        (`weights`), chance is much of it. On four CPUs hackbench's receivers either preempt a sender at each message or read many at \
        once when its slice is over, and a little decides which: under 5.10, 6.1 and 6.12 the model's do the first more often than booted ones, \
        and it switches 42, 29 and 27 % more often, which it did by 3 and 10 % under the first two with wrong turns and costs. Boots of one kernel \
        scatter by a quarter themselves, by nothing but when the workload starts: 28,000 to 46,000 switches/s under 7.2. A sender on \
        another CPU is preempted sooner in the model (within 6 us in the middle after the wakeup is reported under 5.10, where it is 12).\n\n\
        Tasks of `weights` and `nice` compute for 3 ms and sleep for 1 ms; as long as they only computed there were some fifteen \
         waits in a run, of its start and of the program's own lock, and percentiles of those said nothing. The weights of the \
         groups that a workload makes `verify` learns from markers, also since then: of 69209 decisions in `weights` under 5.10 \
         68824 are the model's.",
    ),
    ("missed", "What is still missed, and why", "Written by hand, of the decisions on who runs."),
];

fn page(written: &str) -> String {
    let mut page = String::from(
        "# Fidelity: how far the model agrees with real kernels, and where it departs from them\n\n\
         A recording is walked decision by decision: the model is asked in the kernel's state, its answer compared, and then \
         what the kernel did is applied (`fairlab verify`). *agree*: every state that the unknowns allow gives the kernel's \
         answer. *admissible*: only some of these states do, however likely they are; the model does not know the answer, and \
         the kernel did nothing against its rules. *missed*: none of them does. *not judged*: the trace does not show what the \
         decision rests on. A number agrees only if it is known to its last unit: places of entities and changes of weight that \
         rest on averages of before the trace are admissible where the kernel's lies within what these leave open. In the tables of recordings 12 means that all twelve agree, 11/12 that one does not, 11+1/12 that this one \
         is admissible.\n\n",
    );
    for (part, heading, about) in KEPT {
        let (begin, end) = (format!("<!-- figures: {part} -->"), format!("<!-- end of figures: {part} -->"));
        let kept = written.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end));
        let kept = kept.map_or("\n", |(kept, _)| kept);
        let _ = writeln!(page, "## {heading}\n\n{about}\n\n{begin}{kept}{end}\n");
    }
    page += "## What each rule stands for\n\n\
         Collected from the labels of the policy functions in `crates/kernel/src`; a test keeps it fresh.\n\n\
         | function | kernel | variants | departs |\n|---|---|---|---|\n";
    let sources = files(Scope::Present).into_iter().filter(|file| file.starts_with("crates/kernel/src/"));
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
        "docs/fidelity.md is stale: BLESS=1 cargo test -p fairlab-house --test fidelity_page"
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
