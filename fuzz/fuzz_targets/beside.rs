//! Any bytes as a file that lies beside a trace; the first byte says which.

#![no_main]

#[path = "../lab.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod lab;

use fairlab_kernel::Generation;
use fairlab_verify::{VerifyOptions, verify};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = ["meta.json", "sched_info.txt", "cgroups-start.txt", "tasks-start.txt", "sched_debug-start.txt"];

const TRACE: &str = "# tracer: nop\n\
    <idle>-0 [000] d..3. 1.000100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n\
    a-7 [000] d..3. 1.000900: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let trace = lab::file("trace.txt", TRACE.as_bytes());
    let folder = trace.parent().expect("a folder");
    let path = lab::file(NAMES[usize::from(*which) % NAMES.len()], bytes);
    let kernel = "debian-6.12".parse::<Generation>().expect("a kernel");
    if let Err(problem) = verify(folder, &kernel, &VerifyOptions::default()) {
        lab::one_line(&problem);
    }
    std::fs::remove_file(path).expect("removed");
});
