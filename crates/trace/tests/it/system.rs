//! Which kernel and machine a trace comes from: read from recordings, kept by every writer, shown by others' programs.

use std::path::PathBuf;

use fairlab_event::{Cpu, Event, EventKind, Ns, Sink, System};
use fairlab_trace::tracedat::{TraceDatCompression, TraceDatOptions, TraceDatWriter};
use fairlab_trace::{OutputFormat, ReadOptions, TraceWriter, read, read_path};

use crate::peers::{Folder, run};

/// Keeps what it hears of the system, which must be before the first event.
#[derive(Default)]
struct Heard {
    systems: Vec<System>,
    events: u64,
}

impl Sink for Heard {
    fn event(&mut self, _: &Event<'_>) {
        self.events += 1;
    }

    fn system(&mut self, system: &System) {
        assert_eq!(self.events, 0);
        self.systems.push(system.clone());
    }
}

fn of_recording(name: &str) -> Vec<System> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let mut heard = Heard::default();
    read_path(&path, &ReadOptions::default(), &mut heard).expect("a recording");
    assert!(heard.events > 0);
    heard.systems
}

fn system(release: &str, node: &str, architecture: &str, cpus: u32) -> System {
    System {
        release: release.to_string(),
        node: node.to_string(),
        architecture: architecture.to_string(),
        cpus: Some(cpus),
        ..System::default()
    }
}

fn feed(sink: &mut dyn Sink, system: &System) {
    sink.system(system);
    for time in 1..4 {
        sink.event(&Event::new(Ns(time), Cpu(0), EventKind::Marker { text: "here" }));
    }
}

fn written(format: OutputFormat, system: &System) -> Vec<u8> {
    let mut writer = TraceWriter::new(format, Vec::new());
    feed(&mut writer, system);
    writer.finish().expect("memory takes everything")
}

fn read_back(bytes: &[u8]) -> Vec<System> {
    let mut heard = Heard::default();
    read(Box::new(bytes), &ReadOptions::default(), &mut heard).expect("what was written");
    assert_eq!(heard.events, 3);
    heard.systems
}

#[test]
fn recordings_tell_their_kernel_and_machine() {
    let host = system("6.18.44-fc-v657", "vm", "x86_64", 2);
    for name in ["trace-cmd-3.1-hackbench.dat", "perf-hackbench.data", "perf-make.data"] {
        assert_eq!(of_recording(name), std::slice::from_ref(&host), "{name}");
    }
    let piped = of_recording("perf-pipe.data");
    assert!(piped.len() == 1 && !piped[0].release.is_empty() && piped[0].cpus.is_some(), "{piped:?}");
    // Text of tracefs tells the number of CPUs alone.
    assert_eq!(of_recording("ftrace-5.10-forkstorm.txt.gz"), [system("", "", "", 4)]);
}

#[test]
fn what_is_written_is_read_back() {
    let all = system("6.6.9", "lab", "x86_64", 4);
    let modelled = System { architecture: String::new(), ..system("6.6+NO_RUN_TO_PARITY", "epyc", "", 192) };
    let described = System {
        origin: "modelled".to_string(),
        kernel: "v6.6+NO_RUN_TO_PARITY".to_string(),
        seed: Some(3),
        hz: Some(250),
        topology: (0..192)
            .map(|cpu| format!("cpu{cpu}: threads {cpu} core 0-191 package 0 node 0"))
            .collect(),
        groups: vec!["/a b\t1024\t100\t50000 100000\t0\t-\tcpu\tusage_usec 0 \t0".to_string()],
        ..modelled.clone()
    };
    for format in [OutputFormat::FtraceText, OutputFormat::TraceDat, OutputFormat::PerfData] {
        for system in [&all, &modelled, &described] {
            let back = read_back(&written(format, system));
            assert_eq!(back, std::slice::from_ref(system), "{}", format.name());
        }
    }
    let options = TraceDatOptions { compression: TraceDatCompression::Zstd };
    let mut writer = TraceDatWriter::with_options(Vec::new(), options);
    feed(&mut writer, &all);
    assert_eq!(read_back(&writer.finish().expect("memory takes everything")), [all]);
    assert_eq!(read_back(&written(OutputFormat::FtraceText, &System::default())), []);
}

/// A format without a place for what is known of a run and its machine says so, once.
#[test]
fn what_a_format_has_no_place_for_is_said() {
    let described = System {
        origin: "modelled".to_string(),
        seed: Some(3),
        topology: ["cpu0: threads 0", "cpu1: threads 1", "node0: cpus 0-1"].map(str::to_string).to_vec(),
        groups: vec!["/a".to_string()],
        ..system("6.6", "lab", "", 2)
    };
    let losses = |format, system: &System| {
        let mut writer = TraceWriter::new(format, Vec::new());
        feed(&mut writer, system);
        writer.losses().clone()
    };
    let lost = losses(OutputFormat::Perfetto, &described);
    assert_eq!(
        lost.of_system(),
        ["how the events came about", "the seed", "what 2 CPUs share", "1 control groups with their quotas"]
    );
    assert!(lost.to_string().lines().any(|line| line.contains("what 2 CPUs share")), "{lost}");
    for format in OutputFormat::ALL.into_iter().filter(|&format| format != OutputFormat::Perfetto) {
        assert!(losses(format, &described).of_system().is_empty(), "{}", format.name());
    }
    assert!(losses(OutputFormat::Perfetto, &system("6.6", "lab", "", 2)).of_system().is_empty());
}

#[test]
fn programs_of_others_show_it() {
    let folder = Folder::new("system");
    let lab = system("6.6.9", "lab", "riscv64", 4);
    let path = |format: OutputFormat, system: &System| {
        let file = folder.file(&format!("ours{}", format.suffix()), &written(format, system));
        file.to_str().expect("a path of plain text").to_string()
    };
    let header = run("perf", &["script", "--header-only", "-i", &path(OutputFormat::PerfData, &lab)]);
    for line in ["# hostname : lab", "# os release : 6.6.9", "# arch : riscv64", "# nrcpus avail : 4"] {
        assert!(header.contains(line), "{line}:\n{header}");
    }
    let options = run("trace-cmd", &["dump", "--options", &path(OutputFormat::TraceDat, &lab)]);
    assert!(options.contains("UNAME") && options.contains("\nLinux lab 6.6.9 riscv64\n"), "{options}");
    let metadata = "import sys, duckdb
for key, value in duckdb.sql(f\"select key, value from parquet_kv_metadata('{sys.argv[1]}')\").fetchall():
    if bytes(key) != b'ARROW:schema':
        print(bytes(key).decode(), bytes(value).decode())";
    let table = run("peers-python", &["-c", metadata, &path(OutputFormat::Parquet, &lab)]);
    assert_eq!(table, "release 6.6.9\nnode lab\narchitecture riscv64\ncpus 4\nschema fairlab/events/2\n");
    let perfetto = "import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
trace = proto.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
for packet in trace.packet:
    if packet.HasField('system_info'):
        info = packet.system_info
        print(info.utsname.sysname, info.utsname.release, info.utsname.machine, info.num_cpus, info.utsname.version)";
    let told =
        |system: &System| run("peers-python", &["-c", perfetto, &path(OutputFormat::Perfetto, system)]);
    assert_eq!(told(&lab), "Linux 6.6.9 riscv64 4 \n");
    let old = told(&system("4.4.1", "lab", "x86_64", 4));
    assert!(old.starts_with("Linux 4.14.0 x86_64 4 ") && old.contains("4.4.1"), "{old}");
}
