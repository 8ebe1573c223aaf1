//! The domains that Debian's sources build are those that the booted kernels of their releases had.
//!
//! Those of 6.1 in every run of the tests; those of 5.10, 6.12 and 7.2, whose sources are fetched, by
//! `cargo test -p fairlab-lab --test it own_domains -- --ignored`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_event::System;
use fairlab_kernel::CpuMask;
use fairlab_lab::machines;
use fairlab_lab::source::SourceKernel;
use fairlab_recording::topology_of;
use fairlab_sim::Machine;

/// A file of test data.
fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)).expect("test data")
}

/// What the kernel measured, and what says how it was configured: not a matter of the machine.
const LEFT_OUT: [&str; 3] = ["max_newidle_lb_cost", "groups_flags", "level"];

/// What a recording says of each CPU's domains: spans, and the files that show them.
type Lines = BTreeMap<(u32, u32), (String, BTreeMap<String, String>)>;

/// `cpu3/domain0` as numbers.
fn place(words: &str) -> (u32, u32) {
    let (cpu, domain) = words.split_once('/').expect("a CPU and a domain");
    let number = |word: &str, name: &str| word.strip_prefix(name).and_then(|number| number.parse().ok());
    (number(cpu, "cpu").expect("a CPU"), number(domain, "domain").expect("a domain"))
}

/// The recorded domains of one machine. Those whose files were written down of CPU 0 alone have the spans of the others.
fn recorded(info: &str, spans: &str) -> Lines {
    let mut lines = Lines::new();
    for line in spans.lines() {
        let (at, mask) = line.split_once(": ").expect("a mask");
        let bits = u64::from_str_radix(mask, 16).expect("a mask");
        let cpus = (0..64).filter(|cpu| bits >> cpu & 1 == 1).map(fairlab_event::Cpu).collect::<CpuMask>();
        lines.insert(place(at), (cpus.to_string(), BTreeMap::new()));
    }
    for line in info.lines().filter(|line| line.starts_with('/')) {
        let (file, value) = line.split_once(": ").expect("a file");
        let Some(at) = file.find("/cpu").filter(|_| file.contains("/domain")) else { continue };
        let (at, name) = file[at + 1..].rsplit_once('/').expect("a name");
        if LEFT_OUT.contains(&name) {
            continue;
        }
        let domain = lines.get_mut(&place(at)).expect("a domain with a span");
        domain.1.insert(name.to_string(), value.trim_end().to_string());
    }
    lines
}

/// Compares all recorded machines of a release, `5.10`. Returns how many spans and files there were.
fn compare(release: &str) -> usize {
    let kernel = SourceKernel::parse(&format!("src:debian:{release}")).expect("a kernel");
    let infos = zstd::decode_all(data("sched-domains.txt.zst").as_slice()).expect("zstd");
    let infos = String::from_utf8(infos).expect("text");
    let spans = String::from_utf8(data("sched-domains-spans.txt")).expect("text");
    let sections =
        |text: &'static str| text.split("== ").skip(1).filter_map(|section| section.split_once('\n'));
    let (infos, spans): (&'static str, &'static str) = (infos.leak(), spans.leak());
    let mut compared = 0;
    for (name, spans) in sections(spans).filter(|(name, _)| name.starts_with(&format!("probed/{release}-"))) {
        let (_, info) = sections(infos).find(|(known, _)| *known == name).expect(name);
        let system = System { topology: info.lines().map(String::from).collect(), ..System::default() };
        let topology = topology_of(&system).expect("a machine");
        let usual = machines::find("emulated:2").expect("a machine");
        let machine = Machine { name: name.to_string(), topology, ..usual };
        let built =
            kernel.domains(&machine, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"));
        let built = built.expect("not stopped");
        let recorded = recorded(info, spans);
        for (&(cpu, level), (span, files)) in &recorded {
            let domain = built[cpu as usize].get(level as usize);
            let domain = domain.unwrap_or_else(|| panic!("{name}: CPU {cpu} has no domain {level}"));
            assert_eq!(domain.span, *span, "{name}: CPU {cpu}, domain {level}");
            let own = domain.files.iter().cloned().collect::<BTreeMap<_, _>>();
            if !files.is_empty() {
                assert_eq!(own, *files, "{name}: CPU {cpu}, domain {level}");
            }
            compared += 1 + files.len();
        }
        let all = built.iter().map(Vec::len).sum::<usize>();
        assert_eq!(all, recorded.len(), "{name}: domains");
    }
    compared
}

#[test]
fn domains_of_6_1() {
    assert!(compare("6.1") > 100);
}

#[test]
#[ignore = "fetches and builds three more kernels' sources"]
fn domains_of_the_other_releases() {
    for release in ["5.10", "6.12", "7.2"] {
        assert!(compare(release) > 100, "{release}");
    }
}
