//! What the process of a run may take of this host: a patch that leaks or strays is ended, and the host goes on.
//!
//! Memory is limited for every run. A run that writes no trace needs no file, network or other process once its image is mapped: it is
//! sealed. Whoever means harm has the user's rights already, since a tree's own Makefile was run.
//!
//! Must not know: what runs in the process.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::RawFd;

use libc::c_long;
use rustix::process::{Resource, Rlimit, getpid, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::child;
use crate::elf::PAGE;

/// Memory that a run may take beside what its process begins with, bytes of addresses. 512 CPUs with 4,000 tasks
/// (hackbench -g 100) take a quarter of it.
pub(crate) const MEMORY_BYTES: u64 = 2 << 30;

/// Limits the memory of this process from now on.
pub(crate) fn limit_memory() {
    let limit = getrlimit(Resource::As);
    let most = address_space_bytes().map(|now| now.saturating_add(MEMORY_BYTES));
    lower(Resource::As, [most, limit.current].into_iter().flatten().min());
}

/// Takes from this process for good what a run does not need: processes, files, and all system calls but those of [`allowed`]. Another
/// call raises SIGSYS. Where the host has no seccomp, the limits stand alone.
///
/// `outlets` are all that it may write to.
pub(crate) fn seal(outlets: &[RawFd]) {
    child::keep_heaps();
    lower(Resource::Nproc, Some(0));
    lower(Resource::Fsize, Some(0));
    let filter = filter(outlets).expect("rules name calls that this host's architecture has");
    // Without this, only root may set a filter.
    if set_no_new_privs(true).is_ok() {
        child::filter_system_calls(&filter);
    }
}

fn filter(outlets: &[RawFd]) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let rules = allowed(outlets)?;
    SeccompFilter::new(rules, SeccompAction::Trap, SeccompAction::Allow, architecture)?.try_into()
}

/// System calls of a run whose image is mapped: memory, its end, its answer, and what a report of an error takes.
fn allowed(outlets: &[RawFd]) -> Result<BTreeMap<c_long, Vec<SeccompRule>>, BackendError> {
    let always = [
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        // A host without the instruction sets %gs by it.
        #[cfg(target_arch = "x86_64")]
        libc::SYS_arch_prctl,
    ];
    let equal = |argument, value: u64| condition(argument, SeccompCmpOp::Eq, value);
    let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let written = outlets.iter().map(|&outlet| equal(0, u64::from(outlet.unsigned_abs())));
    let anonymous = libc::MAP_ANONYMOUS as u64;
    let mut rules: BTreeMap<_, _> = always.into_iter().map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_write, written.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_mmap, vec![condition(3, SeccompCmpOp::MaskedEq(anonymous), anonymous)?]);
    // Builds with assertions look whether what they close is open.
    rules.insert(libc::SYS_fcntl, vec![equal(1, libc::F_GETFD as u64)?]);
    rules.insert(libc::SYS_tgkill, vec![equal(0, own)?]);
    rules.insert(libc::SYS_process_vm_readv, vec![equal(0, own)?]);
    Ok(rules)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?])
}

fn lower(resource: Resource, current: Option<u64>) {
    let limit = getrlimit(resource);
    // A limit below the one that holds can always be set.
    let _ = setrlimit(resource, Rlimit { current, maximum: limit.maximum });
}

/// How much this process has mapped; `None` where nothing says so.
fn address_space_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(pages.saturating_mul(PAGE as u64))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::Command;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    /// Set in the process that [`a_sealed_process_frees_what_it_has_allocated`] starts.
    const STARTED: &str = "FAIRLAB_TEST_OF_HEAPS";

    /// The C library asks the host once in a process, before it first makes a thread's heap smaller: so a new process forks one, on a
    /// thread, and seals it.
    #[test]
    fn a_sealed_process_frees_what_it_has_allocated() {
        if std::env::var_os(STARTED).is_none() {
            let name = "limits::tests::a_sealed_process_frees_what_it_has_allocated";
            let mut again = Command::new(std::env::current_exe().expect("a path"));
            let ran = again.args([name, "--exact"]).env(STARTED, "1").output().expect("a process");
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let sealed = child::fork(libc::STDERR_FILENO, || {
            seal(&[]);
            // Below the size from which blocks are mapped one by one.
            drop(black_box((0..100_u8).map(|number| vec![number; 64 << 10]).collect::<Vec<_>>()));
        });
        let ended = waitpid(Some(sealed.expect("a process")), WaitOptions::empty());
        let (_, status) = ended.expect("it can be waited for").expect("its end");
        assert_eq!(status.exit_status(), Some(0), "{status:?}");
    }

    #[test]
    fn a_process_knows_what_it_has_mapped() {
        let before = address_space_bytes().expect("Linux says so");
        let more = black_box(vec![0_u8; 256 << 20]);
        let after = address_space_bytes().expect("Linux says so");
        assert!(after - before >= more.len() as u64 / 2, "{before} {after}");
    }

    #[test]
    fn a_filter_is_made_for_this_host() {
        let filter = filter(&[1, 2]).expect("a filter");
        assert!((50..4096).contains(&filter.len()), "{}", filter.len());
    }
}
