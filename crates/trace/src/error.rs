//! Why a file could not be read as a trace at all.

use std::fmt;
use std::io;

/// A fact about the input that leaves nothing to analyse. Trouble inside a readable trace is counted instead, in
/// [`ImportStats`](crate::ImportStats).
#[derive(Debug)]
pub enum ImportError {
    /// The operating system refused.
    Io(io::Error),
    /// The content is no trace in any known format; the text says what was seen.
    NotATrace(String),
    /// The format is known, this variant of it is not supported; the text says which and what to do.
    Unsupported(String),
    /// The file ends before all that some CPUs did; the text says which.
    CutOff(String),
    /// Too many of the scheduler's events cannot be read for any answer; the text says how many and shows the first.
    Unreadable(String),
    /// Nothing tells what the time stamps count; the text says which clock and what to do.
    UntoldClock(String),
    /// Two recordings in one; the text names them.
    SeveralSources(String),
    /// The trace has not the instance that was asked for; the text says which it has.
    NoSuchInstance(String),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Io(error) => error.fmt(f),
            ImportError::NotATrace(fact)
            | ImportError::Unsupported(fact)
            | ImportError::CutOff(fact)
            | ImportError::Unreadable(fact)
            | ImportError::UntoldClock(fact)
            | ImportError::SeveralSources(fact)
            | ImportError::NoSuchInstance(fact) => f.write_str(fact),
        }
    }
}

impl ImportError {
    /// What the user may do about it: the other half of the sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            ImportError::Io(error) if error.kind() == io::ErrorKind::StorageFull => "free some space there",
            ImportError::Io(_) => "check the path",
            ImportError::NoSuchInstance(_) => "leave --instance out, or give one that is there",
            ImportError::UntoldClock(_) => "or record with a clock of nanoseconds: trace-cmd record -C mono",
            ImportError::SeveralSources(_) => "choose one with --instance, or print each by itself",
            ImportError::CutOff(_) => "copy it again, or answer without them by --allow-unreadable",
            ImportError::Unreadable(_) => {
                "print the trace without options that change its lines, or answer without these events by \
                 --allow-unreadable"
            }
            ImportError::Unsupported(_) | ImportError::NotATrace(_) => {
                "give a trace: perf.data, trace.dat, ftrace text, Perfetto, CTF or Parquet"
            }
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImportError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> ImportError {
        match error.kind() {
            // No fault of the system's, but a limit of ours.
            io::ErrorKind::QuotaExceeded if error.raw_os_error().is_none() => {
                ImportError::Unsupported(error.to_string())
            }
            _ => ImportError::Io(error),
        }
    }
}
