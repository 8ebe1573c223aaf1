//! Kernels of distributors: a release with the commits that were ported back to it.
//!
//! Must not know: what the commits change.

use super::MainlineRelease;

/// A kernel that somebody built: a release with back-ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributionBuild {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a clause.
    pub about: &'static str,
    /// The release that it is based on.
    pub base: MainlineRelease,
    /// Commits that it holds beyond its base, by id or name.
    pub with: &'static [&'static str],
    /// Commits of its base that it undoes.
    pub without: &'static [&'static str],
}

/// Builds that have a name of their own.
#[rustfmt::skip]
pub const BUILDS: &[DistributionBuild] = &[
    DistributionBuild {
        name: "debian-5.10", about: "Debian 11's kernel, 5.10.218 and later", base: MainlineRelease(5, 10),
        with: &[
            "0c2de3f054a5", "7fcc17d0cb12", "28156108fecb", "72d0ad7cb5ba", "0ae78eec8aa6", "8b4e74ccb582", "39a2a6eb5c9b", "9bcb959d05ee",
            "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "8c1f560c1ea3", "b89997aa88f0", "7c7ad626d9a0", "fcf6631f3736", "68d7a190682a",
            "fecfcbc288e9", "1c35b07e6d39", "98b0d890220d", "40f5aa4c5eae", "64eaf50731ac", "0258bdfaff5b", "02da26ad5ed6",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "debian-6.1", about: "Debian 12's kernel, 6.1.180 and later", base: MainlineRelease(6, 1),
        with: &[
            "preemptible", "ad841e569f5c", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c", "1c0482707c42",
            "6b00a4014765", "3af7524b1419", "8aeaffef8c6e", "23d04d8c6b8e", "2feab2492deb", "d32960528702", "ff47a0acfcce", "33cf66d88306",
            "82d6e01a0699", "f4c31b07b136", "17e3e88ed0b6", "98c88dc8a1ac", "group-runnable-wide", "dd29c017aed6",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "debian-6.12", about: "Debian 13's kernel, 6.12.107 and later", base: MainlineRelease(6, 12),
        with: &[
            "preemptible", "66951e4860d3", "2a77e4be12cb", "2ae891b82695", "76f970ce51c8", "79104becf42b", "79f3f9bedd14", "b3d99f43c72b",
            "1319ea57529e", "82d6e01a0699", "aa3ee4f0b754", "f553741ac8c0", "ff47a0acfcce", "33cf66d88306", "f4c31b07b136", "76f2f783294d",
            "17e3e88ed0b6", "98c88dc8a1ac", "ca125231dd29", "boost-with-task", "3da56dc063cd", "server-less-eager", "dd29c017aed6",
            "115135422562",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "debian-7.2", about: "Debian unstable's kernel, 7.2.13", base: MainlineRelease(7, 2),
        with: &["9a8bc9bb4c3f", "51b0e68cfa0a", "c6dcd97c8be7", "4f166adb5cb0", "f0d243a96f26"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-5.14", about: "Ubuntu's kernel for new machines of 2021, 5.14.0", base: MainlineRelease(5, 14),
        with: &["2cfb7a1b031b", "8b4e74ccb582"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-5.15", about: "Ubuntu 22.04's kernel, 5.15.0-204", base: MainlineRelease(5, 15),
        with: &[
            "8b4e74ccb582", "2cfb7a1b031b", "28156108fecb", "f3dd3f674555", "70fb5ccf2ebb", "751d4cbc4387", "23d04d8c6b8e", "829c1651e9c4",
            "a53ce18cacb4", "d32960528702", "4006a72bdd93", "91dcf1e8068e", "3af7524b1419", "ff47a0acfcce", "82d6e01a0699", "f4c31b07b136",
            "98b0d890220d", "40f5aa4c5eae", "64eaf50731ac", "1528c661c24b",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "ubuntu-5.17", about: "Ubuntu's kernel for new machines of 2022, 5.17.0-1035", base: MainlineRelease(5, 17),
        with: &["preemptible", "2cfb7a1b031b", "40f5aa4c5eae", "64eaf50731ac"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-5.19", about: "Ubuntu 22.10's kernel, 5.19.0-50", base: MainlineRelease(5, 19),
        with: &["preemptible", "28156108fecb", "f3dd3f674555", "70fb5ccf2ebb", "751d4cbc4387", "c82a69629c53"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.1", about: "Ubuntu's kernel for new machines of 2023, 6.1.0-1036", base: MainlineRelease(6, 1),
        with: &[
            "preemptible", "ad841e569f5c", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c", "6b00a4014765",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.2", about: "Ubuntu 23.04's kernel, 6.2.0-39", base: MainlineRelease(6, 2),
        with: &["preemptible", "ae2ad293d6be", "829c1651e9c4", "a53ce18cacb4", "91dcf1e8068e", "e5ed0550c04c"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.5", about: "Ubuntu 23.10's kernel, 6.5.0-45", base: MainlineRelease(6, 5),
        with: &["preemptible", "6b00a4014765", "c2e164ac33f7", "1528c661c24b"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.8", about: "Ubuntu 24.04's kernel, 6.8.0-151", base: MainlineRelease(6, 8),
        with: &[
            "preemptible", "2ae891b82695", "afae8002b4fd", "1560d1f6eb6b", "11b1b8bc2b98", "2a77e4be12cb", "faa42d29419d", "f553741ac8c0",
            "d32960528702", "76f970ce51c8", "79104becf42b", "79f3f9bedd14", "b3d99f43c72b", "1319ea57529e", "8aeaffef8c6e", "23d04d8c6b8e",
            "2feab2492deb", "ff47a0acfcce", "33cf66d88306", "82d6e01a0699", "f4c31b07b136", "17e3e88ed0b6", "98c88dc8a1ac", "ca125231dd29", "boost-with-task",
            "4f166adb5cb0",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.11", about: "Ubuntu 24.10's kernel, 6.11.0-29", base: MainlineRelease(6, 11),
        with: &["preemptible", "faa42d29419d", "66951e4860d3", "76f970ce51c8", "f553741ac8c0", "ff47a0acfcce"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.14", about: "Ubuntu 25.04's kernel, 6.14.0-37", base: MainlineRelease(6, 14),
        with: &["preemptible", "2ae891b82695", "f553741ac8c0", "aa3ee4f0b754"], without: &[],
    },
    DistributionBuild {
        name: "ubuntu-6.17", about: "Ubuntu 25.10's kernel, 6.17.0-42", base: MainlineRelease(6, 17),
        with: &[
            "preemptible", "79104becf42b", "79f3f9bedd14", "d206fbad9328", "33cf66d88306", "17e3e88ed0b6", "98c88dc8a1ac", "ca125231dd29",
        ],
        without: &[],
    },
    DistributionBuild {
        name: "ubuntu-7.0", about: "Ubuntu 26.04's kernel, 7.0.0-44", base: MainlineRelease(7, 0),
        with: &["101f3498b4bd", "ac8e69e69363", "boost-with-task", "4f166adb5cb0"], without: &[],
    },
    DistributionBuild {
        name: "v6.6.9", about: "the stable release of January 2024", base: MainlineRelease(6, 6),
        with: &["1c0482707c42", "5ebde09d9170", "eab03c23c2a1", "6d7e4782bcf5"], without: &[],
    },
];
