//! The order of history: every commit of the log that was merged, as git has it, with its date and who says so.
//!
//! Git's history has branches, and this is a line: a release holds first what was made for it, then its urgent fixes, as they
//! came into the tip tree. Trees beside that one (power management) are laid into it by their dates.
//! Ids, dates and places of most rows are facts of public commit mails and push logs: `testdata/history.tsv`, which a test
//! holds against this table.
//!
//! Must not know: what a commit changes, and in which release it came: the rows of the rooms say that.

use super::date::{Date, DatedBy};

/// One commit's place: its id, or its short name where the id is not known.
pub(super) struct Place {
    pub(super) id: &'static str,
    pub(super) date: Date,
}

const fn git(id: &'static str, date: &'static str) -> Place {
    Place { id, date: Date { text: date, by: DatedBy::Git } }
}

const fn page(id: &'static str, date: &'static str) -> Place {
    Place { id, date: Date { text: date, by: DatedBy::Page } }
}

const fn memory(id: &'static str, date: &'static str) -> Place {
    Place { id, date: Date { text: date, by: DatedBy::Memory } }
}

/// Every merged commit of the log, oldest first.
#[rustfmt::skip]
pub(super) const HISTORY: &[Place] = &[
    // v4.19
    memory("523e979d3164", "2018-07-16"),
    memory("baa9be4ffb55", "2018-10-11"),
    // v4.20
    memory("fdf5f315d5cf", "2018-09-10"),
    memory("05484e098448", "2018-09-10"),
    page("3b1baa6496e6", "2018-09-10"),
    memory("4ad3831a9d4a", "2018-09-10"),
    memory("9c63e84db29b", "2018-09-10"),
    memory("c469933e7721", "2018-11-12"),
    // v5.0
    memory("765d0af19f5f", "2018-11-03"),
    memory("3f130a37c442", "2018-11-12"),
    memory("92a801e5d5b7", "2018-11-12"),
    memory("2802bf3cd936", "2018-12-11"),
    memory("732cd75b8c92", "2018-12-11"),
    memory("c40f7d74c741", "2018-12-30"),
    // v5.1
    page("packing-when-idle", "2019-02-04"),
    page("46a745d90585", "2019-02-04"),
    page("23127296889f", "2019-02-04"),
    page("10a35e6812aa", "2019-02-04"),
    page("039ae8bcf7a5", "2019-02"),
    memory("2e8e19226398", "2019-04"),
    // v5.2
    memory("9eca544b1491", "2019-04"),
    page("9b019acb72e4", "2019-04-29"),
    // v5.3
    memory("5e83eafbfd3b", "2019-06-03"),
    memory("1c1b8a7b03ef", "2019-06-03"),
    memory("a3df067974c5", "2019-06-03"),
    memory("66567fcbaeca", "2019-06-17"),
    memory("69842cba9ace", "2019-06"),
    page("af24bde8df20", "2019-06-24"),
    git("5e2d2cc2588b", "2019-09-03"),
    // v5.4
    page("f6cad8df6b30", "2019-07-25"),
    page("43e9f7f231e4", "2019-07-25"),
    page("3c29e651e16d", "2019-07-25"),
    git("de53fd7aedb1", "2019-08-08"),
    git("a55c7454a8c8", "2019-09-03"),
    git("eb92692b2544", "2019-09-13"),
    git("4892f51ad54d", "2019-09-25"),
    memory("4929a4e6faa0", "2019-10"),
    // v5.5
    git("490ba971d8b4", "2019-10-21"),
    git("fcf0553db6f4", "2019-10-21"),
    git("0b0695f2b34a", "2019-10-21"),
    git("5e23e4744315", "2019-10-21"),
    git("b0fb1eb4f04a", "2019-10-21"),
    git("2ab4092fc82d", "2019-10-21"),
    git("c63be7be59de", "2019-10-21"),
    git("11f10e5420f6", "2019-10-21"),
    git("57abff067a08", "2019-10-21"),
    git("b8c96361402a", "2019-10-29"),
    git("3318544b721d", "2019-11-18"),
    git("bef69dd87828", "2019-11-18"),
    git("6cf82d559e1a", "2019-12-17"),
    // v5.6
    git("7c2e8bbd87db", "2019-12-17"),
    git("5443a0be6121", "2019-12-17"),
    git("60588bfa223f", "2019-12-17"),
    git("17346452b25b", "2019-12-25"),
    git("5f68eb19b571", "2020-01-17"),
    git("323af6deaf70", "2020-01-17"),
    git("4c58f57fa6e9", "2020-01-17"),
    git("b396f52326de", "2020-01-28"),
    git("2a4b03ffc69f", "2020-01-28"),
    git("52262ee567ad", "2020-02-10"),
    // v5.7
    git("bec2860a2bd6", "2020-01-28"),
    git("b7a331615d25", "2020-02-20"),
    git("a526d466798d", "2020-02-20"),
    git("000619680c37", "2020-02-20"),
    git("6d4d22468dae", "2020-02-24"),
    git("9f68395333ad", "2020-02-24"),
    git("070f5e860ee2", "2020-02-24"),
    memory("765047932f15", "2020-03-06"),
    git("6212437f0f60", "2020-03-06"),
    git("c32b4308295a", "2020-03-20"),
    memory("26cf52229efc", "2020-03"),
    git("6c8116c914b6", "2020-03-20"),
    git("d76343c6b2b7", "2020-04-08"),
    memory("26a8b12747c9", "2020-04"),
    git("111688ca1c4a", "2020-04-08"),
    git("39f23ce07b93", "2020-05-19"),
    // v5.8
    memory("5a6d6a6ccb5f", "2020-04"),
    git("e98fa02c4f2e", "2020-04-30"),
    memory("ab93a4bc955b", "2020-04-30"),
    git("36c5bdc43870", "2020-04-30"),
    git("95d685935a2e", "2020-05-19"),
    git("c6e7bd7afaeb", "2020-05-25"),
    git("2ebb17717550", "2020-05-25"),
    memory("126c2092e5c8", "2020-05"),
    git("68f7b5cc835d", "2020-06-25"),
    git("01cfcde9c26d", "2020-07-16"),
    // v5.9
    git("3ea2f097b17e", "2020-06-15"),
    git("87e867b4269f", "2020-06-15"),
    git("3edecfef0285", "2020-07-22"),
    // v5.10
    git("5b9f8ff7b320", "2020-08-19"),
    git("6f349818621d", "2020-08-19"),
    git("c200191d4c2c", "2020-08-19"),
    git("ec73240b1627", "2020-08-26"),
    git("1724b95b9297", "2020-08-26"),
    git("2586af1ac187", "2020-09-25"),
    git("fe7491580d7c", "2020-09-25"),
    git("5a7f55590467", "2020-09-25"),
    git("2208cdaa56c9", "2020-09-25"),
    git("e4d32e4d5444", "2020-09-25"),
    git("6e7499135db7", "2020-09-25"),
    memory("df3cb4ea1fb6", "2020-09"),
    git("9abb897345ce", "2020-10-03"),
    git("16b0a7a1a0af", "2020-11-10"),
    git("b4c9c9f15649", "2020-11-10"),
    git("8e1ac4299a6e", "2020-11-17"),
    // v5.11
    git("45da7a2b0af8", "2020-10-29"),
    git("d8fcb81f1acf", "2020-10-29"),
    git("b6d37a764a5b", "2020-11-10"),
    git("7d2b5dd0bcc4", "2020-11-24"),
    git("23e6082a522e", "2020-11-24"),
    // v5.12
    git("8c1f560c1ea3", "2021-01-14"),
    git("fc488ffd4297", "2021-01-14"),
    git("8a41dfcda7a3", "2021-01-14"),
    git("e9b9734b7465", "2021-01-14"),
    page("0ae78eec8aa6", "2021-01-27"),
    page("620a6dc40754", "2021-01-27"),
    page("e6e0dc2d5497", "2021-01-27"),
    page("bae4ec13640b", "2021-01-27"),
    git("6cd56ef1df39", "2021-02-17"),
    git("9fe1f127b913", "2021-02-17"),
    git("156ec6f42b8d", "2021-02-17"),
    git("e0ee463c93c4", "2021-02-17"),
    // v5.13
    git("0826530de3cb", "2021-03-06"),
    git("ab2dde5e98db", "2021-03-06"),
    git("64f84f273592", "2021-03-06"),
    git("7a82e5f52a35", "2021-03-06"),
    git("6553fc181791", "2021-03-06"),
    git("c6f886546cb8", "2021-03-06"),
    git("39b6a429c304", "2021-03-06"),
    git("0372e1cf70c2", "2021-03-06"),
    git("39a2a6eb5c9b", "2021-03-06"),
    git("b89997aa88f0", "2021-03-06"),
    git("585b6d2723dc", "2021-03-06"),
    git("acb4decc1e90", "2021-03-23"),
    git("c722f35b513f", "2021-04-09"),
    git("9bcb959d05ee", "2021-04-09"),
    git("23fb06d9602b", "2021-04-09"),
    git("4aed8aa41524", "2021-04-09"),
    git("8a99b6833c88", "2021-04-16"),
    git("3b87f136f8fc", "2021-04-16"),
    git("0c2de3f054a5", "2021-04-16"),
    git("7c7ad626d9a0", "2021-05-31"),
    git("02da26ad5ed6", "2021-05-31"),
    git("fcf6631f3736", "2021-06-03"),
    git("68d7a190682a", "2021-06-03"),
    git("fdaba61ef8a2", "2021-06-22"),
    // v5.14
    git("e5e678e4fea2", "2021-05-12"),
    git("8d4c97c105ca", "2021-05-12"),
    git("619e090c8e40", "2021-05-12"),
    git("21f56ffe4482", "2021-05-12"),
    memory("97886d9dcd86", "2021-05-12"),
    git("83c5e9d573e1", "2021-06-17"),
    git("8f1b971b4750", "2021-06-17"),
    git("94aafc3ee31d", "2021-06-17"),
    git("fecfcbc288e9", "2021-06-22"),
    git("f4183717b370", "2021-06-24"),
    git("c744dc4ab58d", "2021-06-24"),
    git("1c35b07e6d39", "2021-06-28"),
    git("ceb6ba45dc80", "2021-07-02"),
    git("72d0ad7cb5ba", "2021-07-02"),
    // v5.15
    git("89aafd67f28c", "2021-08-04"),
    git("56498cfb045d", "2021-08-04"),
    memory("7fcc17d0cb12", "2021-08"),
    git("304000390f88", "2021-08-20"),
    // v5.16
    memory("8354eb9eb3dd", "2021-10"),
    git("efd984c481ab", "2021-10-05"),
    git("7fd7a9e0caba", "2021-10-05"),
    git("a480addecc0d", "2021-10-05"),
    git("51ce83ed523b", "2021-10-05"),
    git("2cae3948edd4", "2021-10-05"),
    git("183b8ec38f1e", "2021-10-05"),
    git("16d364ba6ef2", "2021-10-05"),
    git("4006a72bdd93", "2021-10-05"),
    git("4ef0c5c6b5ba", "2021-10-14"),
    git("778c558f49a2", "2021-10-15"),
    git("9e9af819db5d", "2021-10-31"),
    git("9d783c8dd112", "2021-10-31"),
    git("e60b56e46b38", "2021-10-31"),
    git("c5b0a7eefc70", "2021-10-31"),
    // v5.17
    git("8b4e74ccb582", "2021-12-04"),
    git("98b0d890220d", "2022-01-18"),
    git("7ceb77103001", "2022-01-18"),
    git("95246d1ec80b", "2022-01-18"),
    git("2d02fa8cc21a", "2022-01-18"),
    git("b1e8206582f9", "2022-02-19"),
    // v5.18
    git("2cfb7a1b031b", "2022-02-11"),
    git("e496132ebedd", "2022-02-11"),
    git("40f5aa4c5eae", "2022-04-19"),
    // v5.19
    git("64eaf50731ac", "2022-04-22"),
    // v6.0
    git("cb29a5c19d2d", "2022-06-13"),
    git("026b98a93bbd", "2022-06-13"),
    git("f5b2eeb49991", "2022-06-13"),
    git("792b9f65a568", "2022-06-13"),
    git("28156108fecb", "2022-06-13"),
    git("f3dd3f674555", "2022-06-13"),
    git("70fb5ccf2ebb", "2022-06-28"),
    git("e2f3e35f1f5a", "2022-06-28"),
    git("3e8c6c9aac42", "2022-06-28"),
    git("b812fc9768e0", "2022-06-28"),
    git("c82a69629c53", "2022-07-13"),
    git("751d4cbc4387", "2022-08-04"),
    // v6.1
    git("e1f078f50478", "2022-08-23"),
    git("d6531ab6e501", "2022-08-23"),
    git("b9bae70440d2", "2022-09-07"),
    git("b0defa7ae03e", "2022-09-15"),
    // v6.2
    git("ad841e569f5c", "2022-10-27"),
    memory("d6962c4fe8f9", "2022-11"),
    // v6.3
    git("8ad075c2eb1f", "2022-12-27"),
    git("79ba1e607d68", "2023-01-15"),
    memory("829c1651e9c4", "2023-02"),
    git("e5ed0550c04c", "2023-02-11"),
    memory("a53ce18cacb4", "2023-03"),
    git("91dcf1e8068e", "2023-04-12"),
    // v6.4
    git("eff6c8ce8d4d", "2023-03-22"),
    git("41abdba93747", "2023-03-22"),
    // v6.5
    git("eefefa716c9f", "2023-05-08"),
    memory("ef7657d4d2d6", "2023-05-08"),
    memory("18ad34532755", "2023-05-08"),
    git("5fd6d7f43958", "2023-05-08"),
    git("43726bdedd29", "2023-05-08"),
    memory("c9ca07886aaa", "2023-05-08"),
    git("995998ebdebd", "2023-05-08"),
    git("046a5a95c3b0", "2023-05-08"),
    memory("044f0e27dec6", "2023-05-08"),
    git("bf2dc42d6beb", "2023-05-08"),
    git("7d0583cf9ec7", "2023-06-05"),
    git("ae2ad293d6be", "2023-07-10"),
    // v6.6
    git("fee1759e4f04", "2023-07-13"),
    git("7ff1693236f5", "2023-07-13"),
    git("b1bfeab9b002", "2023-07-13"),
    git("ed74cc4995d3", "2023-07-13"),
    memory("79462e8c879a", "2023-07"),
    memory("677ea015f231", "2023-07"),
    memory("ab83f455f04d", "2023-07"),
    git("af4cf40470c2", "2023-07-19"),
    git("e0c2ff903c32", "2023-07-19"),
    git("86bfbb7ce4f6", "2023-07-19"),
    git("99d4d26551b5", "2023-07-19"),
    git("147f3efaa241", "2023-07-19"),
    git("76cae9dbe185", "2023-07-19"),
    git("e8f331bcc270", "2023-07-19"),
    git("5e963f2bd465", "2023-07-19"),
    git("e4ec3318a17f", "2023-07-19"),
    git("d07f09a1f99c", "2023-07-19"),
    git("c2e164ac33f7", "2023-07-26"),
    git("4efcc8bc7e08", "2023-07-26"),
    memory("88c56cfeaec4", "2023-08"),
    git("63304558ba5d", "2023-08-17"),
    git("f8858d96061f", "2023-09-02"),
    git("450e749707bc", "2023-09-13"),
    memory("2f2fc17bab00", "2023-09"),
    git("650cad561cce", "2023-10-03"),
    memory("8dafa9d0eb1a", "2023-10"),
    memory("b01db23d5923", "2023-10"),
    memory("d2929762cc3f", "2023-10"),
    // v6.7
    git("1528c661c24b", "2023-09-18"),
    memory("2f8c62296b6f", "2023-09"),
    git("6b00a4014765", "2023-09-29"),
    git("f577cd57bfaa", "2023-10-12"),
    git("1c0482707c42", "2023-10-20"),
    git("b95303e0aeaf", "2023-10-24"),
    git("8881e1639f1f", "2023-10-24"),
    git("22165f61d0c4", "2023-10-24"),
    git("984ffb6a4366", "2023-10-24"),
    git("eab03c23c2a1", "2023-11-14"),
    git("6d7e4782bcf5", "2023-11-14"),
    // v6.8
    git("2227a957e1d5", "2023-11-15"),
    git("ee4373dc902c", "2023-11-15"),
    git("50181c0cff31", "2023-11-23"),
    git("9c0b4bb7f630", "2023-11-23"),
    git("5068d84054b7", "2023-11-29"),
    git("7736ae5572eb", "2023-12-23"),
    git("11137d384996", "2023-12-23"),
    git("3af7524b1419", "2023-12-23"),
    // v6.9
    memory("1b600da51073", "2024-02"),
    memory("8aeaffef8c6e", "2024-02"),
    memory("23d04d8c6b8e", "2024-02"),
    git("7f1a7229718d", "2024-02-28"),
    git("54de44274703", "2024-02-28"),
    git("11b1b8bc2b98", "2024-04-22"),
    git("afae8002b4fd", "2024-04-22"),
    git("1560d1f6eb6b", "2024-04-22"),
    // v6.10
    git("11b0bfa5d463", "2024-03-12"),
    git("22d5607400c6", "2024-03-25"),
    git("fa427e8e53d8", "2024-03-25"),
    git("58eeb2d79b54", "2024-03-25"),
    git("c829d6818b60", "2024-03-26"),
    git("287372fa39f5", "2024-05-17"),
    git("72bffbf57c52", "2024-05-17"),
    git("2feab2492deb", "2024-07-01"),
    // v6.11
    git("d32960528702", "2024-07-04"),
    // v6.12
    memory("f0e1a0643a59", "2024-06"),
    git("c40dd90ac045", "2024-07-29"),
    git("faa42d29419d", "2024-07-29"),
    memory("557a6bfc662c", "2024-07-29"),
    git("5f6bd380c7bd", "2024-07-29"),
    git("8e2e13ac6122", "2024-08-17"),
    git("152e11f6df29", "2024-08-17"),
    git("54a58a787791", "2024-08-17"),
    git("82e9d0456e06", "2024-08-17"),
    git("85e511df3cec", "2024-08-17"),
    git("857b158dc5e8", "2024-08-17"),
    git("aef6987d8954", "2024-08-17"),
    git("dae4320b29f0", "2024-09-03"),
    memory("fc1892becd56", "2024-09"),
    memory("d4ac164bde7a", "2024-10"),
    memory("9b5ce1a37e90", "2024-10"),
    // v6.13
    git("4423af84b297", "2024-10-07"),
    git("7c70cb94d29c", "2024-11-05"),
    git("ff47a0acfcce", "2024-12-02"),
    git("76f2f783294d", "2024-12-09"),
    git("6d71a9c61604", "2025-01-09"),
    git("66951e4860d3", "2025-01-13"),
    // v6.14
    git("c2a295bffeaf", "2024-12-09"),
    git("1a49104496d3", "2024-12-09"),
    git("61b82dfb6b7e", "2024-12-09"),
    git("2a77e4be12cb", "2024-12-09"),
    memory("af98d8a36a96", "2024-12"),
    git("7c8cd569ff66", "2024-12-20"),
    git("873199d27bb2", "2025-01-13"),
    git("3229adbe7875", "2025-01-13"),
    memory("3429dd57f0de", "2025-01"),
    git("76f970ce51c8", "2025-03-15"),
    // v6.15
    git("f553741ac8c0", "2025-02-14"),
    git("2ae891b82695", "2025-02-14"),
    // v6.16
    git("f2d650618bc7", "2025-04-08"),
    git("aa3ee4f0b754", "2025-05-21"),
    // v6.17
    git("155213a2aed4", "2025-07-09"),
    git("3a0baa8e6c57", "2025-07-09"),
    git("f79c9aa446d6", "2025-07-14"),
    git("1eec89a67141", "2025-07-14"),
    // v6.18
    git("2cd571245b43", "2025-09-03"),
    git("7fc2d1439247", "2025-09-03"),
    git("e1fad12dcb66", "2025-09-03"),
    memory("eb962f251fbb", "2025-09-03"),
    git("5b726e9bf954", "2025-09-03"),
    git("fe8d238e646e", "2025-09-15"),
    git("fcd394866e3d", "2025-09-15"),
    git("253b3f587241", "2025-09-15"),
    git("0d4eaf8caf8c", "2025-09-15"),
    git("17e3e88ed0b6", "2025-10-14"),
    git("0e4a169d1a2b", "2025-10-22"),
    git("956dfda6a708", "2025-11-06"),
    // v6.19
    git("79104becf42b", "2025-10-16"),
    git("82d6e01a0699", "2025-10-16"),
    git("79f3f9bedd14", "2025-11-11"),
    git("e837456fdca8", "2025-11-17"),
    git("d206fbad9328", "2025-11-17"),
    git("33cf66d88306", "2025-11-17"),
    memory("522fb20fbdbe", "2025-11"),
    git("ca125231dd29", "2025-12-06"),
    // v7.0
    git("089d84203ad4", "2025-12-14"),
    git("45e09225085f", "2025-12-14"),
    git("80390ead2080", "2025-12-15"),
    git("7dadeaa6e851", "2026-01-08"),
    git("4b603f1551a7", "2026-01-22"),
    git("e34881c84c25", "2026-02-03"),
    git("b3d99f43c72b", "2026-02-23"),
    git("bcd74b2ffdd0", "2026-02-23"),
    git("ff38424030f9", "2026-02-23"),
    git("6e3c0a4e1ad1", "2026-02-23"),
    page("f4c31b07b136", "2026-03"),
    git("1319ea57529e", "2026-04-02"),
    // v7.1
    git("9fe89f022c05", "2026-02-23"),
    git("101f3498b4bd", "2026-02-23"),
    git("db4551e2ba34", "2026-02-23"),
    git("d3d663faa1d4", "2026-02-23"),
    git("fd54d81c2c0e", "2026-02-23"),
    memory("558c18d3fbb6", "2026-02"),
    memory("97015376642f", "2026-02"),
    memory("5d88e424ec1b", "2026-02"),
    memory("c8cdb9b51640", "2026-02"),
    git("9213aa4784cf", "2026-02-27"),
    git("059258b0d424", "2026-04-03"),
    git("ac8e69e69363", "2026-04-28"),
    // v7.2
    git("6d2051403d6c", "2026-05"),
    git("25a32e400a14", "2026-05"),
    git("61ea17a63719", "2026-05"),
    git("f666241e6bd5", "2026-06"),
    git("29922fdfc2a4", "2026-06-09"),
    // v7.3
    git("fa02b2868420", "<=2026-08-18"),
    git("4f166adb5cb0", "<=2026-08-18"),
    git("4161cb2d867b", "<=2026-08-18"),
    git("80ad6d3338eb", "<=2026-08-18"),
    git("90ac22ffef48", "<=2026-08-18"),
    git("5c0b58bd1c9f", "<=2026-08-18"),
    git("507f910a4e1f", "<=2026-08-18"),
    git("fb1050ac8e40", "<=2026-08-18"),
    git("85570f10a4c6", "<=2026-08-18"),
    git("3cd1f657fae5", "<=2026-08-18"),
    git("8f97b627ff1c", "<=2026-08-18"),
    git("49f87b4d0be8", "<=2026-08-18"),
    git("7ad0ec7890b3", "<=2026-08-18"),
    git("ba0d3bf5f97b", "<=2026-08-18"),
    git("7cd2ef17de5e", "<=2026-08-18"),
    git("0d1e7a2bab35", "<=2026-08-18"),
    git("cdd9e37ed46a", "<=2026-08-18"),
    git("f2267ad5777f", "<=2026-08-18"),
    git("296744614dd0", "<=2026-08-18"),
    git("04998aa54848", "<=2026-08-18"),
    git("293f9611ae73", "2026-08-07"),
    git("180ff97c1869", "<=2026-08-08"),
    git("6060d61d13a1", "<=2026-08-08"),
    git("50b101f6e586", "<=2026-08-08"),
    git("0fbd428d0788", "<=2026-08-08"),
    git("7fd540b1bcaf", "<=2026-08-08"),
    git("f2c2ba7219e5", "<=2026-08-18"),
    git("c6dcd97c8be7", "2026-09-02"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::LOG;

    /// What public commit mails, push logs and pages say: testdata/README.md.
    const TABLE: &str = include_str!("../../../../testdata/history.tsv");

    /// The table's rows: release, id, date, who says so, subject.
    fn rows() -> Vec<[&'static str; 5]> {
        let row =
            |line: &'static str| <[&str; 5]>::try_from(line.split('\t').collect::<Vec<_>>()).expect(line);
        TABLE.lines().skip(1).map(row).collect()
    }

    #[test]
    fn every_merged_commit_has_one_place_and_every_place_a_commit() {
        for change in LOG.iter() {
            let places = HISTORY.iter().filter(|place| place.id == change.id()).count();
            assert_eq!(places, usize::from(change.release.is_some()), "{}", change.id());
        }
        for place in HISTORY {
            assert!(LOG.iter().any(|change| change.id() == place.id), "{}", place.id);
        }
    }

    #[test]
    fn a_date_is_a_year_a_month_or_a_day() {
        for place in HISTORY {
            let text = place.date.text.trim_start_matches("<=");
            let parts = text.split('-').map(str::len).collect::<Vec<_>>();
            assert!([&[4][..], &[4, 2], &[4, 2, 2]].contains(&parts.as_slice()), "{}", place.id);
            assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'), "{}", place.id);
        }
    }

    #[test]
    fn the_log_is_what_the_table_says_in_its_order() {
        let mut log = LOG.iter();
        for [release, id, date, by, subject] in rows() {
            // The log has commits between that the table lacks, but none of the table's in another order.
            let change = log.find(|change| change.id() == id);
            let change = change.unwrap_or_else(|| panic!("{id} stands elsewhere in the log"));
            assert_eq!(change.release.map(|first| first.to_string()).as_deref(), Some(release), "{id}");
            let dated = change.date.map(|known| (known.text, known.by.name()));
            assert_eq!(dated, Some((date, by)), "{id}");
            assert_eq!(change.subject, subject, "{id}");
        }
        assert!(rows().len() > 350);
    }

    #[test]
    fn what_the_table_does_not_know_is_from_memory_or_from_a_push_log() {
        let known = rows().into_iter().map(|[_, id, ..]| id).collect::<Vec<_>>();
        for place in HISTORY.iter().filter(|place| !known.contains(&place.id)) {
            let is_bound = place.date.text.starts_with("<=");
            assert_eq!(place.date.by, if is_bound { DatedBy::Git } else { DatedBy::Memory }, "{}", place.id);
        }
    }

    /// Pairs of the table that git has in the other order: a commit with an earlier day than one of a release before. By days
    /// alone there are 90 of 51 commits. Who counts only what one tree shows, commits of the tip tree's sched/core by its mails,
    /// and fixes of its sched/urgent, finds 75 pairs of 36 commits; two more pairs have their day from a page. Of the 13 others,
    /// seven are of logs of pushes, of sched/hrtick and of a page that names a parent; six are of before v5.5 and from memory.
    #[test]
    fn pairs_that_a_line_cannot_have_in_gits_order_are_counted() {
        let release =
            |id: &str| LOG.iter().find(|change| change.id() == id).and_then(|change| change.release);
        let of_days = rows().into_iter().filter(|[_, _, date, ..]| date.len() == 10);
        let days = of_days.map(|[_, id, date, by, _]| (release(id), date, by)).collect::<Vec<_>>();
        let count = |sure: bool| {
            let counted = || days.iter().filter(move |(.., by)| !sure || *by == "git");
            let lacking = |(release, date, _): &(_, &str, _)| {
                counted().filter(|other| other.0 < *release && other.1 > *date).count()
            };
            let all = counted().map(lacking);
            all.fold((0, 0), |(pairs, commits), lacks| (pairs + lacks, commits + usize::from(lacks > 0)))
        };
        assert_eq!((count(false), count(true)), ((90, 51), (81, 42)));
    }

    #[test]
    fn a_commit_lacks_fixes_that_were_made_later_for_the_release_before() {
        let find = |id: &str| LOG.iter().find(|change| change.id() == id).expect("in the log");
        let absent = |id| find(id).absent_fixes().map(crate::generation::Change::id).collect::<Vec<_>>();
        assert_eq!(absent("11b0bfa5d463"), ["11b1b8bc2b98", "afae8002b4fd", "1560d1f6eb6b"]);
        assert_eq!(absent("0b0695f2b34a"), [""; 0]);
        let pairs = LOG.iter().map(|change| (change, change.absent_fixes().count()));
        assert!(pairs.clone().filter(|(_, absent)| *absent > 0).count() > 36);
        for (change, absent) in pairs {
            assert!(
                absent == 0 || change.absent_fixes().all(|fix| fix.release < change.release),
                "{}",
                change.id()
            );
        }
    }
}
