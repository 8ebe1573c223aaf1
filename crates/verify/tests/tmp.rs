use fairlab_verify::fidelity::measure;
use fairlab_verify::{VerifyOptions, recorded_kernel, verify};
use std::path::Path;
#[test]
fn tmp() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings");
    if let Ok(name) = std::env::var("ONE") {
        let path = root.join(name);
        let options = VerifyOptions { misses: 40, ..VerifyOptions::default() };
        let kernel = recorded_kernel(&path, &options).unwrap().generation;
        let a = verify(&path, &kernel, &options).unwrap();
        for (k, t) in &a.kinds {
            println!("{:?} {:?} {:?} {:?} {:?}", k, t.all, t.misses, t.not_judged, t.cases);
        }
        for m in &a.misses {
            println!("{m:#?}");
        }
        println!("set right {} notes {:?}", a.state_set_right, a.notes);
        return;
    }
    let f = measure(&root, 2).unwrap();
    for (n, e) in f.unreadable().chain(f.unknown()) {
        println!("{n}: {e}");
    }
    for (n, e) in f.notes() {
        println!("{n}: {e}");
    }
    std::fs::write("/work/h/V-fig.tsv", f.figures().to_text()).unwrap();
}
