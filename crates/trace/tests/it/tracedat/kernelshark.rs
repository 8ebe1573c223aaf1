//! KernelShark's library opens our files and shows of them what our text says.

use std::path::Path;

use super::made::{BOTH, RECORDING, converted};
use super::real_tools::{assert_same, one_blank, our_lines};
use crate::kept::{options_of, testdata};
use crate::peers::{Folder, run};
use fairlab_trace::read_path;

/// Lists entries as KernelShark's table does: time in ns, CPU, task, event and its fields.
const PROGRAM: &str = r#"
import ctypes, os, sys
try:
    library = ctypes.CDLL("libkshark.so.2")
except OSError:
    library = ctypes.CDLL(sys.argv[1])
class Entry(ctypes.Structure):
    pass
Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("visible", ctypes.c_uint16), ("stream", ctypes.c_int16),
    ("event", ctypes.c_int16), ("cpu", ctypes.c_int16), ("pid", ctypes.c_int32), ("offset", ctypes.c_int64), ("ts", ctypes.c_int64)]
entry, rows, context = ctypes.POINTER(Entry), ctypes.POINTER(ctypes.POINTER(Entry))(), ctypes.c_void_p()
library.kshark_load_entries.restype = ctypes.c_ssize_t
library.kshark_load_entries.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(type(rows))]
texts = [library.kshark_get_task, library.kshark_get_event_name, library.kshark_get_info]
for text in texts:
    text.restype, text.argtypes = ctypes.c_void_p, [entry]
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]
def of(text, row):
    place = text(row)
    words = ctypes.string_at(place)
    libc.free(place)
    return words
assert library.kshark_instance(ctypes.byref(context))
stream = library.kshark_open(context, os.fsencode(sys.argv[2]))
assert stream >= 0, stream
count = library.kshark_load_entries(context, stream, ctypes.byref(rows))
assert count >= 0, count
for at in range(count):
    row = rows[at]
    task, event, info = (of(text, row) for text in texts)
    seconds, rest = divmod(row.contents.ts, 10**9)
    line = b"%s-%d [%03d] %d.%09d: %s: %s" % (task, row.contents.pid, row.contents.cpu, seconds, rest, event.split(b"/")[-1], info)
    sys.stdout.buffer.write(line.strip() + b"\n")
"#;

fn shown(path: &Path) -> Vec<String> {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/libkshark.so.2");
    let [library, path] = [&library, path].map(|path| path.to_str().expect("a path of plain text"));
    run("peers-python", &["-c", PROGRAM, library, path]).lines().map(str::to_string).collect()
}

/// The line, or only its start where a plugin of libtraceevent shows the fields in another form.
fn comparable(line: &str) -> String {
    const BY_PLUGINS: [&str; 3] = [": sched_switch:", ": sched_wakeup:", ": sched_wakeup_new:"];
    let end = BY_PLUGINS.iter().find_map(|name| Some(line.find(name)? + name.len()));
    one_blank(&line[..end.unwrap_or(line.len())])
}

#[test]
fn kernelshark_shows_what_our_text_says() {
    let folder = Folder::new("kernelshark");
    for name in [RECORDING, "ftrace-6.6-vhost.txt.zst", "ftrace-7.2-probed.txt.zst"] {
        let ours = our_lines(|sink| {
            read_path(&testdata(name), &options_of(name), sink).expect("a recording");
        });
        let ours: Vec<String> = ours.iter().map(|line| comparable(line)).collect();
        assert!(ours.len() >= 3000, "{name}: {}", ours.len());
        for compression in BOTH {
            let file = folder.file("ours.dat", &converted(name, compression).0);
            let shown: Vec<String> = shown(&file).iter().map(|line| comparable(line)).collect();
            assert_same(&shown, &ours, &format!("{name} {compression:?}"));
        }
    }
}
