//! Prepared data sets of TensorFlow Datasets: those of a URL are those of a folder, with few requests.

use super::*;
use std::collections::BTreeMap;
use tfseek::io::Store;
use tfseek_testkit::labelled::shard as shard_of;
use tfseek_tfds::{
    Builder, BuilderOptions, CopySource, Features, FoundFeatures, SetMetadata, SplitCheck, TfdsError,
    is_prepared,
};

const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
    "label": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 3}},
    "other": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 2}}}}"#;

/// A server and a folder with the same files.
struct Served {
    case: Case,
    dir: TempDir,
}

impl Served {
    /// Makes the version 1.0.0 of `tiny`: the splits `train` with 3 shards of 10, 20 and 10 records and
    /// `test` with one of 5.
    fn new(scheme: &'static str) -> Served {
        let case = Case { server: Server::start(), cache: tempfile::tempdir().unwrap(), scheme };
        let served = Served { case, dir: tempfile::tempdir().unwrap() };
        served.fill("tiny/1.0.0", "");
        served
    }

    fn fill(&self, folder: &str, fields: &str) {
        let text = format!(
            r#"{{"name": "tiny", "version": "1.0.0", {fields} "splits": [
            {{"name": "train", "shardLengths": ["10", "20", "10"]}}, {{"name": "test", "shardLengths": ["5"]}}]}}"#
        );
        for (k, records) in [0..10, 10..30, 30..40].into_iter().enumerate() {
            self.set(&format!("{folder}/{}", train(k)), shard_of(records));
        }
        self.set(&format!("{folder}/tiny-test.tfrecord-00000-of-00001"), shard_of(0..5));
        self.set(&format!("{folder}/dataset_info.json"), text.into());
        self.set(&format!("{folder}/features.json"), FEATURES.into());
        self.set(&format!("{folder}/label.labels.txt"), b"cat\ndog\nhorse\n".to_vec());
    }

    fn set(&self, name: &str, bytes: Vec<u8>) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &bytes).unwrap();
        self.case.set(name, bytes);
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.dir.path().join(name)).unwrap();
        self.case.server.remove(&self.case.object(name));
    }

    fn options(&self) -> BuilderOptions {
        BuilderOptions { dataset: self.case.with(self.case.store()), ..BuilderOptions::default() }
    }

    /// Opens the data set of a URL and of the folder.
    fn both(&self, folder: &str, options: &BuilderOptions) -> [Result<Builder, TfdsError>; 2] {
        [Builder::open(self.case.url(folder), options), Builder::open(self.dir.path().join(folder), options)]
    }

    /// Returns the messages of the errors of both. They have the same names of files.
    fn refused<T>(&self, [remote, local]: [Result<T, TfdsError>; 2]) -> [String; 2] {
        let [remote, local] = [remote.err().unwrap().to_string(), local.err().unwrap().to_string()];
        assert_no_secret(&remote);
        let local_root = format!("{}/", self.dir.path().display());
        [remote.replace(&self.case.url(""), ""), local.replace(&local_root, "")]
    }
}

fn train(shard: usize) -> String {
    format!("tiny-train.tfrecord-{shard:05}-of-00003")
}

fn all() -> impl Iterator<Item = Served> {
    SCHEMES.into_iter().map(Served::new)
}

fn selected(builder: &Builder, spec: &str) -> Vec<i64> {
    let selection = builder.select(spec).unwrap();
    labels(&selection.dataset.ranges(&selection.ranges).unwrap())
}

#[test]
fn records_features_and_splits_are_those_of_a_folder() {
    for served in all() {
        let [remote, local] = served.both("tiny/1.0.0", &served.options()).map(Result::unwrap);
        assert_eq!(remote.folder().to_str(), Some(&*served.case.url("tiny/1.0.0")));
        assert_eq!((remote.name(), remote.version()), (local.name(), local.version()));
        assert_eq!(remote.features(), local.features());
        assert_eq!(remote.splits().len(), 2);
        for (remote, local) in remote.splits().iter().zip(local.splits()) {
            assert_eq!((&remote.name, &remote.shard_lengths), (&local.name, &local.shard_lengths));
            let shards = local.shards.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
            let shards: Vec<_> = shards.map(|name| served.case.url(&format!("tiny/1.0.0/{name}"))).collect();
            assert_eq!(remote.shards.iter().map(|url| url.to_str().unwrap()).collect::<Vec<_>>(), shards);
        }
        for spec in ["train", "train[5%:60%]", "test+train[1shard]", "train[-3:]+train[:3]"] {
            assert_eq!(selected(&remote, spec), selected(&local, spec), "{spec}");
        }
        let message = |builder: &Builder| builder.select("train[:5%").unwrap_err().to_string();
        assert_eq!(message(&remote), message(&local));
        // A refreshed dataset has the same records, by a listing of its own.
        let train = remote.select("train").unwrap().dataset;
        assert_eq!(labels(&train.refresh().unwrap()), (0..40).collect::<Vec<_>>());
    }
}

#[test]
fn a_folder_is_listed_once_and_its_files_are_read_once() {
    for served in all() {
        // Requests of the builds of indexes are not those of opening.
        let built = Builder::open_records(served.case.url("tiny/1.0.0"), &served.options()).unwrap();
        assert_eq!((built.select("train").unwrap().len(), built.select("test").unwrap().len()), (40, 5));
        served.case.server.counts();
        let builder = Builder::open(served.case.url("tiny/1.0.0"), &served.options()).unwrap();
        let counts = served.case.server.counts();
        let (lists, gets) = match served.case.scheme {
            // `other.labels.txt` is asked for, because the server has no listings.
            "http" => (0, 4),
            _ => (1, 3),
        };
        // The hub has redirects for large files, and one request for the commit.
        let more = if served.case.scheme == "hf" { counts.resolves + 1 } else { 0 };
        assert_eq!((counts.lists, counts.heads), (lists, 0), "{} {counts:?}", served.case.scheme);
        if served.case.scheme == "hf" {
            assert!(counts.requests <= lists + gets + more, "{counts:?}");
        } else {
            assert_eq!((counts.gets, counts.requests), (gets, lists + gets), "{counts:?}");
        }
        assert_eq!(builder.select("train[:10%]").unwrap().len(), 4);
        assert_eq!(builder.select("train[10%:]+test").unwrap().len(), 41);
        let counts = served.case.server.counts();
        // The shards are those of the listing, in which there is no folder of index files. Without times in a
        // listing, parts of the shards are compared.
        match served.case.scheme {
            "hf" => assert_eq!((counts.heads, counts.lists), (0, 0), "{counts:?}"),
            "http" => assert_eq!((counts.heads, counts.lists), (3 + 4, 0), "{counts:?}"),
            _ => assert_eq!((counts.heads, counts.lists, counts.bytes), (0, 0, 0), "{counts:?}"),
        }
    }
}

#[test]
fn versions_and_configurations_are_found_by_listings() {
    for served in all().filter(|served| served.case.scheme != "http") {
        served.fill("conf/en/1.9.0", r#""configName": "en","#);
        served.fill("conf/en/1.10.0", r#""configName": "en","#);
        served.fill("conf/fr/1.0.0", r#""configName": "fr","#);
        served.set("conf/en/2.0.0.incompleteABC/x", b"x".to_vec());
        let options = served.options();
        let with = |config: Option<&str>, version: Option<&str>| BuilderOptions {
            config: config.map(str::to_owned),
            version: version.map(str::to_owned),
            ..options.clone()
        };
        for (folder, options, version) in [
            ("tiny", &options, "tiny/1.0.0"),
            ("conf", &with(Some("en"), None), "conf/en/1.10.0"),
            ("conf/", &with(Some("en"), Some("1.9.0")), "conf/en/1.9.0"),
        ] {
            let builder = Builder::open(served.case.url(folder), options).unwrap();
            assert_eq!(builder.folder().to_str(), Some(&*served.case.url(version)));
        }
        for (folder, options) in [
            ("conf", &options),
            ("conf", &with(Some("de"), None)),
            ("conf/en", &with(None, Some("3.0.0"))),
            ("conf/fr/1.0.0", &with(Some("en"), None)),
            ("conf/en/2.0.0.incompleteABC", &options),
        ] {
            let [remote, local] = served.refused(served.both(folder, options));
            assert_eq!(remote, local);
        }
        let prepared = |folder: &str| {
            let store: Arc<dyn Store> = served.case.store();
            is_prepared(Path::new(&served.case.url(folder)), Some(&store))
        };
        assert!(prepared("tiny") && prepared("conf") && prepared("conf/en") && prepared("tiny/1.0.0"));
        assert!(!prepared("conf/en/2.0.0.incompleteABC") && !prepared("none") && !prepared("tin"));
        let missing = Builder::open(served.case.url("none"), &options).unwrap_err().to_string();
        assert_eq!(missing, format!("{}: no such folder", served.case.url("none")));
    }
}

#[test]
fn faults_are_told_as_of_a_folder() {
    for served in all() {
        let options = served.options();
        let web = served.case.scheme == "http";
        served.remove(&format!("tiny/1.0.0/{}", train(1)));
        let both = served.both("tiny/1.0.0", &options);
        if web {
            // Shards are found when their split is opened.
            let [remote, _] = both;
            let e = remote.unwrap().select("train").unwrap_err().to_string();
            assert!(e.starts_with(&served.case.url(&format!("tiny/1.0.0/{}", train(1)))), "{e}");
            assert!(e.contains("no such object"), "{e}");
        } else {
            let [remote, local] = served.refused(both);
            assert_eq!(remote, local.replace(&format!("{}/", served.dir.path().display()), ""));
            assert!(remote.contains("1 of 3 shards of split train is missing: "), "{remote}");
        }
        served.fill("tiny/1.0.0", "");
        served.set(&format!("tiny/1.0.0/{}", train(1)), shard_of(0..7));
        let [remote, local] = served.both("tiny/1.0.0", &options).map(Result::unwrap);
        let [remote, local] = served.refused([remote.select("train"), local.select("train")]);
        assert_eq!(remote, local);
        assert!(remote.contains(
            "expected 20 records, found 7 (shard 1 of split train), by tiny/1.0.0/dataset_info.json"
        ));
        served.fill("tiny/1.0.0", "");
        for name in ["features.json", "dataset_info.json"] {
            served.set(&format!("tiny/1.0.0/{name}"), b"{".to_vec());
            let [remote, local] = served.refused(served.both("tiny/1.0.0", &options));
            assert_eq!(remote, local);
            served.set(&format!("tiny/1.0.0/{name}"), vec![b' '; (8 << 20) + 1]);
            let [remote, local] = served.refused(served.both("tiny/1.0.0", &options));
            assert_eq!(remote, local);
            served.remove(&format!("tiny/1.0.0/{name}"));
            let [remote, local] = served.refused(served.both("tiny/1.0.0", &options));
            if web && name == "dataset_info.json" {
                assert_eq!(
                    remote,
                    "tiny/1.0.0/dataset_info.json: expected a file, found none (a store without listings needs the folder of a version)"
                );
            } else {
                assert_eq!(remote, local);
            }
        }
    }
}

#[test]
fn folders_of_urls_have_no_secrets() {
    let served = Served::new("http");
    let url = served.case.url("tiny/1.0.0");
    for url in [format!("{url}?X-Signature=secret"), url.replace("//", "//user:pw@")] {
        let e = Builder::open(&url, &served.options()).unwrap_err().to_string();
        assert!(e.contains("expected the URL of a folder without a user and a query"), "{e}");
        assert_no_secret(&e);
    }
    assert_eq!(served.case.server.counts().requests, 0);
    let e = Builder::open("s3://bucket/x", &BuilderOptions::default()).unwrap_err().to_string();
    assert!(e.contains("expected a local path"), "{e}");
}

#[test]
fn names_of_labels_are_found_beside_objects() {
    for served in all() {
        let store: Arc<dyn Store> = served.case.store();
        let urls = [0, 1].map(|k| served.case.url(&format!("tiny/1.0.0/{}", train(k))));
        let files = |urls: &[String]| FoundFeatures::of_files(urls.iter().map(Path::new), Some(&store));
        let found = files(&urls);
        assert_eq!(found.label_names().keys().collect::<Vec<_>>(), ["label"], "{:?}", found.warnings);
        let filter = found.filter(&"label == 'horse'".parse().unwrap()).unwrap();
        let ds = served.case.with(served.case.store()).open(urls.clone()).unwrap();
        let selected = ds.select(&filter, &Default::default()).unwrap().0;
        assert_eq!(selected.len(), 1);
        let local = Features::read(&served.dir.path().join("tiny/1.0.0"), None).unwrap();
        assert_eq!(Features::read(Path::new(&served.case.url("tiny/1.0.0")), Some(&store)).unwrap(), local);
        served.case.set("plain.tfrecord", shard_of(0..3));
        served.case.server.counts();
        let none = files(&[served.case.url("plain.tfrecord")]);
        assert!(none.features.is_none() && none.warnings.is_empty(), "{:?}", none.warnings);
        assert!(served.case.server.counts().requests <= 2);
        // Without a right to list objects, those that do not exist are refused.
        if ["s3", "gs", "az"].contains(&served.case.scheme) {
            served.case.server.refuse_lists();
            let none = files(&[served.case.url("plain.tfrecord")]);
            assert!(none.features.is_none() && none.warnings.is_empty(), "{:?}", none.warnings);
            let mut check = SplitCheck::new(Some(store.clone()));
            assert_eq!(check.add(Path::new(&served.case.url("plain.tfrecord")), Some(3)), None);
            assert!(check.infos.is_empty() && check.warnings.is_empty(), "{:?}", check.warnings);
        }
    }
}

#[test]
fn other_files_have_sizes() {
    for served in all() {
        served.set("tiny/1.0.0/more/notes.txt", b"notes".to_vec());
        served.set("tiny/1.0.0/.tfseek/x.tfri", b"x".to_vec());
        let store: Arc<dyn Store> = served.case.store();
        let url = served.case.url("tiny/1.0.0");
        let local = CopySource::open(&served.dir.path().join("tiny/1.0.0"), None).unwrap().unwrap();
        served.case.server.counts();
        let remote = CopySource::open(Path::new(&url), Some(&store)).unwrap().unwrap();
        let counts = served.case.server.counts();
        assert_eq!(remote.metadata().folder(), Path::new(&url));
        assert_eq!(remote.info_text(&[]), local.info_text(&[]));
        if served.case.scheme == "http" {
            assert_eq!(counts.requests, 1);
            let e = remote.metadata().other_files().unwrap_err().to_string();
            assert_eq!(e, format!("{url}: expected a store with listings of folders, found one without"));
            continue;
        }
        assert_eq!(remote.shards().len(), local.shards().len());
        let files = |source: &CopySource| -> BTreeMap<_, _> {
            source.metadata().other_files().unwrap().into_iter().collect()
        };
        assert_eq!(files(&remote), files(&local));
        assert_eq!(files(&remote).len(), 3);
        // One listing of the folder, and one of that in it.
        let lists = counts.lists + served.case.server.counts().lists;
        assert_eq!((counts.lists, lists), (1, 2));
        let found = SetMetadata::find(Path::new(&served.case.url("tiny")), Some(&store)).unwrap();
        assert_eq!(found.folder(), Path::new(&url));
        served.remove("tiny/1.0.0/dataset_info.json");
        assert!(CopySource::open(Path::new(&url), Some(&store)).unwrap().is_none());
    }
}

/// Returns the folders of versions below a folder, and adds the files of all of them to the server.
fn serve(served: &Served, folder: &Path, name: &str, versions: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{name}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            serve(served, &path, &name, versions);
        } else {
            served.case.set(&name, std::fs::read(&path).unwrap());
            if let Some(version) = name.strip_suffix("/dataset_info.json") {
                versions.push(version.to_owned());
            }
        }
    }
}

/// The sets that TensorFlow Datasets wrote, in the folder that `TFSEEK_TFDS_CASES` names. Without it nothing
/// is compared.
#[test]
fn recorded_sets_are_those_of_folders() {
    let Some(data) = std::env::var_os("TFSEEK_TFDS_CASES").map(std::path::PathBuf::from) else {
        tfseek_testkit::skipped("TFSEEK_TFDS_CASES");
        return;
    };
    for served in all() {
        let mut versions = Vec::new();
        serve(&served, &data.join("sets"), "sets", &mut versions);
        let index = IndexOptions::new().mode(tfseek::IndexMode::Memory);
        let options = BuilderOptions {
            dataset: served.case.with(served.case.store()).index(index),
            ..BuilderOptions::default()
        };
        let read = |folder: &str| {
            let builder = Builder::open(folder, &options)?;
            let dataset = builder.select("all")?.dataset;
            let (mut buf, mut payloads) = (Vec::new(), Vec::new());
            for i in 0..dataset.len() {
                payloads.push(dataset.read(i, &mut buf)?.payload().to_vec());
            }
            Ok::<_, tfseek_tfds::TfdsError>((format!("{:?}", builder.features()), payloads))
        };
        let (mut read_sets, mut refused) = (0, 0);
        for version in &versions {
            let [remote, local] =
                [served.case.url(version), data.join(version).display().to_string()].map(|folder| {
                    let found = read(&folder);
                    found.map_err(|e| e.to_string().replace(&folder, ""))
                });
            let is_missing = |e: &str| e.contains("is missing") || e.contains("are missing");
            if served.case.scheme == "http" && local.as_ref().is_err_and(|e| is_missing(e)) {
                assert!(remote.unwrap_err().contains("no such object"), "{version}");
                continue;
            }
            (read_sets, refused) =
                (read_sets + usize::from(local.is_ok()), refused + usize::from(local.is_err()));
            assert_eq!(remote, local, "{} {version}", served.case.scheme);
        }
        assert!(
            read_sets >= 40 && refused >= 3,
            "{}: {read_sets} read, {refused} refused",
            served.case.scheme
        );
        eprintln!("{}: {read_sets} sets read, {refused} refused", served.case.scheme);
    }
}
