//! Traces written line by line, and verified.

#![allow(dead_code, reason = "each test uses its own part")]

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use fairlab_kernel::Generation;
use fairlab_verify::{Agreement, VerifyOptions, verify};

/// A trace that grows line by line, 10 us a line.
#[derive(Default)]
pub struct Trace {
    text: String,
    /// Lines so far.
    pub lines: u32,
}

impl Trace {
    /// `context` is a name and a pid, as the trace has them.
    pub fn line(&mut self, context: &str, cpu: u32, flags: &str, event: &str) {
        self.lines += 1;
        let micros = self.lines * 10;
        let (seconds, micros) = (1 + micros / 1_000_000, micros % 1_000_000);
        writeln!(self.text, "{context:>16} [{cpu:03}] {flags} {seconds}.{micros:06}: {event}").expect("text");
    }

    pub fn switch(&mut self, cpu: u32, [prev, next]: [&str; 2], state: &str) {
        let [prev, next] = [prev, next].map(|name| match name.rsplit_once('-') {
            Some(("<idle>", _)) | None => (format!("swapper/{cpu}"), "0"),
            Some((comm, pid)) => (comm.to_string(), pid),
        });
        let context = if prev.1 == "0" { "<idle>-0".to_string() } else { format!("{}-{}", prev.0, prev.1) };
        let prio = |comm: &str| match comm {
            "urgent" => 50,
            _ if comm.starts_with("migration/") => 0,
            _ => 120,
        };
        let (from, to) = (prio(&prev.0), prio(&next.0));
        let event = format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio={from} prev_state={state} ==> next_comm={} next_pid={} next_prio={to}",
            prev.0, prev.1, next.0, next.1
        );
        self.line(&context, cpu, "d..2.", &event);
    }

    pub fn charge(&mut self, context: &str, cpu: u32) {
        let (comm, pid) = context.rsplit_once('-').expect("a pid");
        let event = format!("sched_stat_runtime: comm={comm} pid={pid} runtime=9000 [ns]");
        self.line(context, cpu, "d..2.", &event);
    }

    /// A task that sleeps on `cpu` is woken by an interrupt there, runs, and sleeps.
    pub fn naps(&mut self, name: &str, cpu: u32, beside: &str) {
        let (comm, pid) = name.rsplit_once('-').expect("a pid");
        let woken = format!("comm={comm} pid={pid} prio=120 target_cpu={cpu:03}");
        self.line(beside, cpu, "d.h2.", &format!("sched_waking: {woken}"));
        self.line(beside, cpu, "dNh3.", &format!("sched_wakeup: {woken}"));
        self.charge(beside, cpu);
        self.switch(cpu, [beside, name], "R+");
        self.charge(name, cpu);
        self.switch(cpu, [name, beside], "S");
    }

    /// What all came to on so many CPUs; two share a cache.
    pub fn verified(&self, test: &str, nr_cpus: u32, kernel: &str) -> Agreement {
        let pairs = |cpu: u32| (format!("{cpu}"), format!("{}-{}", cpu & !1, cpu | 1), cpu / 2);
        self.verified_on(test, nr_cpus, kernel, pairs)
    }

    /// What all came to on a machine of one cache, where two CPUs each are threads of a core.
    pub fn verified_on_threads(&self, test: &str, nr_cpus: u32, kernel: &str) -> Agreement {
        let threads = |cpu: u32| (format!("{}-{}", cpu & !1, cpu | 1), format!("0-{}", nr_cpus - 1), 0);
        self.verified_on(test, nr_cpus, kernel, threads)
    }

    /// `described`: which CPUs are threads of one core, which share a cache, and in which package a CPU is.
    fn verified_on(
        &self,
        test: &str,
        nr_cpus: u32,
        kernel: &str,
        described: impl Fn(u32) -> (String, String, u32),
    ) -> Agreement {
        // Two tests may want the same.
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("fairlab-made-{}-{test}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("trace.txt"), &self.text).expect("written");
        let mut cpus = "uname: Linux x 6.12.1\n".to_string();
        for cpu in 0..nr_cpus {
            let (threads, cache, package) = described(cpu);
            let line = format!("cpu{cpu}: threads {threads} core {cache} package {package} node 0");
            writeln!(cpus, "{line}").expect("text");
        }
        writeln!(cpus, "node0: cpus 0-{} distance 10", nr_cpus - 1).expect("text");
        fs::write(folder.join("sched_info.txt"), cpus).expect("written");
        fs::write(folder.join("meta.json"), r#"{"HZ": 250, "release": "6.12.1"}"#).expect("written");
        // Nothing runs in groups, and no mask was set before.
        fs::write(folder.join("sched_debug-start.txt"), "").expect("written");
        let generation = kernel.parse::<Generation>().expect("a kernel");
        let options = VerifyOptions { misses: 10, decisions: true, ..VerifyOptions::default() };
        let agreement = verify(&folder, &generation, &options);
        fs::remove_dir_all(&folder).expect("removed");
        agreement.unwrap_or_else(|error| panic!("{test}: {error}"))
    }
}
