//! Data sets of episodes: tables of steps.

use crate::common::robot::episodes;
use crate::common::*;
use std::fs;

/// Returns the data set `robot`, of two shards with 3 and 2 episodes: 3 + 1 + 4 and 0 + 2 steps.
fn robot() -> Folder {
    let dir = Folder::new();
    dir.robot(&[&episodes(0, &[3, 1, 4]), &episodes(3, &[0, 2])]);
    dir
}

const SHARDS: [&str; 2] =
    ["robot/robot-train.tfrecord-00000-of-00002", "robot/robot-train.tfrecord-00001-of-00002"];

fn tables() -> [String; 2] {
    SHARDS.map(|shard| shard.replace("robot/", "robot/.tfseek/") + ".tfrs")
}

#[test]
fn tables_are_built_once_and_extended() {
    let dir = robot();
    let ran = dir.run(&["index", "--steps", "robot", "--bytes"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sizes = |dir: &Folder| tables().map(|name| fs::metadata(dir.path(&name)).unwrap().len());
    let (size, data) = (sizes(&dir), SHARDS.map(|name| fs::metadata(dir.path(name)).unwrap().len()));
    let (size, data): (u64, u64) = (size.iter().sum(), data.iter().sum());
    let share = 100.0 * size as f64 / data as f64;
    let built = |built, fresh| {
        format!(
            "steps: 5 episodes, 10 steps; {built} of tables built, {fresh} fresh; {size} B, {share:.3} % of the data\n"
        )
    };
    assert!(
        ran.err.contains("2 shards, 5 records") && ran.err.ends_with(&built("2 files", 0)),
        "{}",
        ran.err
    );
    for (args, expected) in [
        (&["robot"][..], built("0 files", 2)),
        (&["robot[train]"], built("0 files", 2)),
        (&["--rebuild", "-j", "1", "robot/*.tfrecord*"], built("2 files", 0)),
    ] {
        let ran = dir.run(&[&["index", "--steps", "--bytes"], args].concat());
        assert!(ran.code == 0 && ran.err.ends_with(&expected), "{args:?}: {}", ran.err);
    }

    // A split selects shards.
    fs::remove_file(dir.path(&tables()[0])).unwrap();
    let ran = dir.run(&["index", "--steps", "robot[train[:2]]"]);
    assert!(ran.err.contains("steps: 3 episodes, 8 steps; 1 file of tables built, 0 fresh; "), "{}", ran.err);

    // A shard that has grown, and one that has other records.
    dir.robot(&[&episodes(0, &[3, 1, 4, 1]), &episodes(7, &[5, 2])]);
    let ran = dir.run(&["index", "--steps", "robot"]);
    assert!(
        ran.err.contains("steps: 6 episodes, 16 steps; 2 files of tables built, 0 fresh; "),
        "{}",
        ran.err
    );

    // Another folder.
    fs::remove_dir_all(dir.path("robot/.tfseek")).unwrap();
    let ran = dir.run(&["index", "--steps", "--index-dir", "elsewhere", "robot", "-q"]);
    assert_eq!((ran.code, ran.err.as_str(), dir.path("robot/.tfseek").exists()), (0, "", false));
    let found = fs::read_dir(dir.path("elsewhere")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(found.filter(|path| path.extension().is_some_and(|ending| ending == "tfrs")).count(), 2);
}

#[test]
fn folders_without_steps_are_refused_before_they_are_indexed() {
    let dir = robot();
    for (name, text, code) in [
        (
            "plain",
            None,
            "expected the folder of a data set of episodes, found TFRecord files without a features.json",
        ),
        (
            "labels",
            Some(r#"{"type": "tensorflow_datasets.core.features.text_feature.Text", "content": {}}"#),
            "expected the folder of a data set of episodes, found a features.json without a Dataset feature",
        ),
    ] {
        fs::create_dir(dir.path(name)).unwrap();
        dir.shard(&format!("{name}/x.tfrecord"), labels(0..3));
        if let Some(text) = text {
            let text = format!(
                r#"{{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {{"a": {text}}}}}"#
            );
            fs::write(dir.path(&format!("{name}/features.json")), text).unwrap();
        }
        dir.run(&["index", "--steps", name]).fails(2, &[&format!("--steps: {name}: {code}")]);
        assert!(!dir.path(&format!("{name}/.tfseek")).exists());
    }
    dir.run(&["index", "--steps=action", "robot"])
        .fails(2, &["expected a feature with steps (\"steps\"), found \"action\""]);
    assert!(!dir.path("robot/.tfseek").exists());
    dir.run(&["index", "--steps=action", "--pack", "all", "robot"]).fails(2, &["found \"action\""]);
    assert!(!dir.path("robot/.tfseek").exists());
}

/// The other shards are done, and the error has the place.
#[test]
fn an_episode_with_other_numbers_of_steps_fails_its_shard() {
    let dir = robot();
    let mut uneven = robot::Episode::new(1, 3);
    uneven.last.pop();
    dir.robot(&[&[robot::Episode::new(0, 2).encode(), uneven.encode()], &episodes(2, &[4])]);
    let ran = dir.run(&["index", "--steps", "robot"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for text in [
        "robot-train.tfrecord-00000-of-00002: record 1",
        "3 of",
        "2 of \"steps/is_last\"",
        "steps: 1 episode, 4 steps; 1 file of",
    ] {
        assert!(ran.err.contains(text), "no {text:?} in {}", ran.err);
    }
    assert_eq!(tables().map(|name| dir.path(&name).exists()), [false, true]);
}

#[test]
fn steps_are_printed_as_records() {
    let dir = robot();
    let step = |i: u64, episode: u64, step: u64, record: u64, file: usize| {
        let (features, mode) =
            (format!("{episode}.0 {step}.0"), if step == 0 { "0 \"still\"" } else { "1 \"moving\"" });
        let last = u8::from(step + 1 == [3, 1, 4, 0, 2][episode as usize]);
        let of =
            if episode == record { String::new() } else { format!(", record {record} of {}", SHARDS[file]) };
        let image = "image     bytes     <png 2x2 73 B>";
        format!(
            "step {i}, 167 B, step {step} of episode {episode}{of}\n  action    float[2]  {features}\n  {image}\n  is_first  int64     {}\n  \
             is_last   int64     {last}\n  mode      int64     {mode}\n",
            u8::from(step == 0)
        )
    };
    let first: String =
        [step(0, 0, 0, 0, 0), step(1, 0, 1, 0, 0), step(2, 0, 2, 0, 0), step(3, 1, 0, 1, 0)].concat();
    dir.run(&["head", "--steps", "--bytes", "-4", SHARDS[0]]).prints(&first);
    let ran = dir.run(&["head", "--steps", "-n", "1", "robot"]);
    assert!(ran.out.contains("00001-of-00002 <==\nstep 0 of record 1 of"), "{}", ran.out);
    // `head` needs neither an index nor tables.
    assert!(!dir.path("cache").exists() && !dir.path("robot/.tfseek").exists());

    dir.run(&["get", "--steps", "--bytes", "robot", "3", "-1"])
        .prints(&[step(3, 1, 0, 1, 0), step(9, 4, 1, 1, 1)].concat());
    dir.run(&["get", "--steps", "--bytes", "robot[train[4:]]", "1"])
        .prints(&step(1, 4, 1, 1, 1).replace("of episode 4", "of episode 0"));
    let all = dir.run(&["get", "--steps", "-f", "json", "robot", ":"]).out;
    let drawn = dir.run(&["sample", "--steps", "-f", "json", "-n", "3", "robot"]).out;
    assert!(drawn.lines().count() == 3 && drawn.lines().all(|line| all.contains(line)), "{drawn}");
    let line = r#""index":9,"record":1,"episode":4,"step":1,"features":{"action":[4.0,1.0],"#;
    assert!(all.lines().count() == 10 && all.lines().last().unwrap().contains(line), "{all}");
    dir.run(&["get", "--steps", "robot", "10"]).fails(2, &["no step 10: there are 10"]);

    // Conditions are those of steps, with names of labels.
    let ran = dir.run(&[
        "get",
        "--steps",
        "-f",
        "json",
        "--features",
        "action",
        "robot",
        ":",
        "--where",
        "mode == \"still\"",
    ]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 4), "{}", ran.err);
    let ran = dir.run(&[
        "head",
        "--steps",
        "-f",
        "json",
        "--skip",
        "1",
        "robot",
        "--where",
        "is_last == 1",
        "--features",
        "action",
    ]);
    assert_eq!(ran.out.matches("\"action\":[1.0,0.0]").count(), 1, "{}", ran.out);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 2));

    // The records are Examples, in every form.
    let ran = dir.run(&["head", "--steps", "-f", "json", "-n", "-3", SHARDS[0]]);
    assert_eq!(ran.out.lines().count(), 5);
    fs::write(dir.path("steps.jsonl"), ran.out).unwrap();
    let ran = dir.run(&["convert", "steps.jsonl", "made.tfrecord"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let printed = |args: &[&str]| dir.run(&[args, &["-f", "proto-json"]].concat()).out;
    assert_eq!(printed(&["cat", "made.tfrecord"]), printed(&["head", "--steps", "-5", SHARDS[0]]));

    // A compressed file beside a features.json.
    dir.shard("robot/more.tfrecord.gz", episodes(0, &[2, 1]));
    for verb in [&["head"][..], &["sample"], &["get"]] {
        let words = ["--steps", "-f", "json", "robot/more.tfrecord.gz"];
        let ran = dir.run(&[verb, &words, &[":"][..usize::from(verb == ["get"])]].concat());
        assert_eq!((ran.code, ran.out.lines().count()), (0, 3), "{verb:?}: {}", ran.err);
    }

    dir.shard("x.tfrecord", labels(0..3));
    for verb in ["head", "sample"] {
        dir.run(&[verb, "--steps", "x.tfrecord"]).fails(2, &["found TFRecord files without a features.json"]);
    }
    dir.run(&["get", "--steps", "x.tfrecord", "0"])
        .fails(2, &["found TFRecord files without a features.json"]);
}

#[test]
fn an_episode_that_has_no_steps_is_left_out_on_request() {
    let dir = Folder::new();
    let mut uneven = robot::Episode::new(1, 3);
    uneven.last.pop();
    dir.robot(&[&[robot::Episode::new(0, 2).encode(), uneven.encode(), robot::Episode::new(2, 1).encode()]]);
    let ran = dir.run(&["head", "--steps", "-f", "json", "robot"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 2), "{}", ran.err);
    assert!(ran.err.contains("record 1 at byte") && ran.err.contains("number of steps"), "{}", ran.err);
    for args in [&["head", "robot"][..], &["get", "robot", ":"], &["sample", "robot"]] {
        let ran = dir.run(&[args, &["--steps", "-f", "json", "--damage", "skip"]].concat());
        assert_eq!((ran.code, ran.out.lines().count()), (1, 3), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("record 1"), "{}", ran.err);
    }
}

/// Returns the lines of `info` about episodes.
fn episode_lines(ran: &Ran) -> Vec<String> {
    let lines = ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.skip_while(|line| !line.starts_with("episodes ")).collect()
}

#[test]
fn info_has_the_steps_and_the_state_of_their_tables() {
    let dir = robot();
    let size: u64 = SHARDS.iter().map(|name| fs::metadata(dir.path(name)).unwrap().len()).sum();
    let info = |dir: &Folder, args: &[&str]| {
        let ran = dir.run(&[&["info", "--bytes"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran
    };
    let steps = "steps 10 in 5 episodes: shortest 0, median 2, longest 4";
    let end = ["episodes steps", steps];
    let none = format!("tables none; `tfseek index --steps robot` builds them, which reads {size} B");
    let expected = [end[0], end[1], &none, "pictures image"];
    let ran = info(&dir, &["robot"]);
    assert_eq!(episode_lines(&ran), expected);
    assert!(
        ran.out.contains("steps/image") && ran.out.contains("Dataset(Image(uint8, [2, 2, 3]))"),
        "{}",
        ran.out
    );
    // Nothing is written.
    assert!(!dir.path("cache").exists() && !dir.path("robot/.tfseek").exists());
    // The summary of a part is that of its records.
    assert_eq!(
        episode_lines(&info(&dir, &["robot[train[1:3]]"]))[1],
        "steps 5 in 2 episodes: shortest 1, median 1, longest 4"
    );

    assert_eq!(dir.run(&["index", "--steps", "robot"]).code, 0);
    let bytes: u64 = tables().iter().map(|name| fs::metadata(dir.path(name)).unwrap().len()).sum();
    let built = format!("tables 2 files, {bytes} B");
    assert_eq!(episode_lines(&info(&dir, &["robot"])), [end[0], end[1], &built, "pictures image"]);
    assert_eq!(
        episode_lines(&info(&dir, &["robot[train[1:3]]"]))[1],
        "steps 5 in 2 episodes: shortest 1, median 1, longest 4"
    );
    let line = info(&dir, &["--json", SHARDS[0]]).out;
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    let found = &json["steps"]["steps"];
    assert_eq!(
        (&found["tables"], &found["episodes"], &found["steps"]),
        (&"built".into(), &3.into(), &8.into()),
        "{line}"
    );
    assert_eq!(
        (&found["shortest"], &found["median"], &found["longest"]),
        (&1.into(), &3.into(), &4.into()),
        "{line}"
    );
    assert_eq!(found["pictures"], serde_json::json!(["image"]));

    // Tables of other records.
    dir.shard(SHARDS[1], episodes(3, &[7, 2]));
    assert_eq!(dir.run(&["index", "robot"]).code, 0);
    let lines = episode_lines(&info(&dir, &["robot"]));
    assert_eq!(lines[1], "steps 17 in 5 episodes: shortest 1, median 3, longest 7");
    let part = "1 stale: the step tables belong to other records or features; `tfseek index --steps robot` builds them";
    assert!(lines[2].starts_with("tables 1 of 2 files, ") && lines[2].contains(part), "{lines:?}");
    let json: serde_json::Value = serde_json::from_str(&info(&dir, &["--json", SHARDS[1]]).out).unwrap();
    assert_eq!(
        (&json["steps"]["steps"]["tables"], &json["steps"]["steps"]["steps"]),
        (&"stale".into(), &9.into())
    );

    // Records that are no episodes.
    dir.shard("x.tfrecord", labels(0..3));
    let ran = info(&dir, &["x.tfrecord"]);
    assert!(episode_lines(&ran).is_empty());
    let json: serde_json::Value = serde_json::from_str(&info(&dir, &["--json", "x.tfrecord"]).out).unwrap();
    assert!(json["steps"].is_null());
}

/// A set that is too large to be counted is summarized from its tables alone. Its other file is a hole of 2
/// GiB.
#[test]
#[cfg(target_os = "linux")]
fn info_does_not_count_a_large_set() {
    let dir = robot();
    let lines = |dir: &Folder| episode_lines(&dir.run(&["info", "robot"]));
    assert!(lines(&dir)[1].starts_with("steps 10 in 5 episodes"));
    fs::File::create(dir.path(SHARDS[1])).unwrap().set_len(2 << 30).unwrap();
    let found = lines(&dir);
    assert_eq!(found[1], "steps not counted: 1 file without tables", "{found:?}");
    assert!(found[2].starts_with("tables none; "), "{found:?}");
    assert_eq!(dir.run(&["index", "--steps", SHARDS[0]]).code, 0);
    let found = lines(&dir);
    assert!(
        found[1].starts_with("steps 8 in 3 episodes") && found[2].starts_with("tables 1 file, "),
        "{found:?}"
    );
}

#[test]
fn statistics_over_steps_are_exact() {
    let dir = robot();
    // Steps 0 to 2, 0, 0 to 3 of episodes 0 to 2, and 0 and 1 of episode 4.
    let actions: [(f64, f64); 10] = [
        (0.0, 0.0),
        (0.0, 1.0),
        (0.0, 2.0),
        (1.0, 0.0),
        (2.0, 0.0),
        (2.0, 1.0),
        (2.0, 2.0),
        (2.0, 3.0),
        (4.0, 0.0),
        (4.0, 1.0),
    ];
    let mean = |values: &dyn Fn(&(f64, f64)) -> f64| actions.iter().map(values).sum::<f64>() / 10.0;
    let ran = dir.run(&["stats", "--steps", "--features", "action", "--json", "robot"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&found["num_transitions"], &found["num_trajectories"]), (&10.into(), &4.into()));
    let action = &found["action"];
    assert_eq!(action["mean"], serde_json::json!([mean(&|a| a.0), mean(&|a| a.1)]));
    assert_eq!(
        (&action["min"], &action["max"]),
        (&serde_json::json!([0.0, 0.0]), &serde_json::json!([4.0, 3.0]))
    );
    let variance = mean(&|a| (a.0 - 1.7).powi(2));
    assert!((action["std"][0].as_f64().unwrap() - variance.sqrt()).abs() < 1e-12, "{action}");
    assert_eq!(found["proprio"]["q99"], serde_json::json!([0.0, 0.0]));

    // Another name and style; a split and a condition select episodes.
    let ran = dir.run(&[
        "stats",
        "--steps=steps",
        "--features",
        "proprio=action",
        "--json",
        "--style",
        "octo",
        "robot[train[:2]]",
    ]);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["proprio"]["max"], serde_json::json!([1.0, 2.0]));
    assert!(
        found["proprio"]["p99"].is_array() && found["action"].is_null() && found["num_transitions"] == 4,
        "{found}"
    );
    let all = dir.run(&["stats", "--steps", "--where", "episode_metadata/file_path == \"a.h5\"", "robot"]);
    assert_eq!(all.out.lines().next(), Some("4 episodes, 10 steps"));
    // `mode` is a label, and `is_first` a boolean.
    assert!(all.out.contains("\naction\n  dim") && !all.out.contains("mode"), "{}", all.out);
    assert_eq!(
        all.out.lines().last().map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["1", "1.00000", "1.00000", "0", "0", "2.91000", "3.00000"])
    );

    for (args, expected) in [
        (&["stats", "--steps", "--by", "mode", "robot"][..], "--by"),
        (&["stats", "--json", "--style", "octo", "robot"], "--steps"),
        (&["stats", "--steps", "--features", "actoin", "robot"], "actoin"),
    ] {
        let ran = dir.run(args);
        assert!(ran.code == 2 && ran.err.contains(expected), "{args:?}: {} {}", ran.code, ran.err);
    }
}

/// Returns the data set `robot` with one fault of each kind, in two shards.
fn faulty() -> Folder {
    let made = |number, change: &dyn Fn(&mut robot::Episode)| {
        let mut episode = robot::Episode::new(number, 3);
        change(&mut episode);
        episode.encode()
    };
    let mut damaged = robot::SQUARE.to_vec();
    // The pixels, and not the header.
    damaged[45] ^= 0xff;
    let first = [
        made(0, &|_| ()),
        made(1, &|episode| episode.last.truncate(2)),
        made(2, &|episode| episode.first[1] = 1),
        made(3, &|episode| episode.last[2] = 0),
        made(4, &|episode| episode.actions[5] = f32::NAN),
    ];
    let second = [
        made(5, &|episode| episode.actions.fill(0.5)),
        made(6, &|episode| episode.images[1] = b"no picture".to_vec()),
        made(7, &|episode| episode.images[0] = damaged.clone()),
        made(8, &|episode| episode.images[2] = robot::WIDE.to_vec()),
        robot::Episode::new(9, 1).encode(),
        robot::Episode::new(10, 0).encode(),
    ];
    let dir = Folder::new();
    dir.robot(&[&first, &second]);
    dir
}

#[test]
fn verify_names_each_fault_of_episodes_once() {
    let dir = faulty();
    // Shard, record, texts, whether it is a note, whether only --decode finds it.
    let faults: [(usize, u64, &[&str], bool, bool); 8] = [
        (0, 1, &["\"steps/is_last\"", "3 of \"steps/action\" and 2 of"], false, false),
        (0, 2, &["\"steps/is_first\": step 1: expected 0, found 1"], false, false),
        (0, 3, &["\"steps/is_last\": step 2: expected 1, found 0"], true, false),
        (0, 4, &["\"steps/action\": step 2: expected numbers, found NaN as value 1"], true, false),
        (1, 0, &["\"steps/action\": all 3 steps have the same action"], true, false),
        (1, 1, &["\"steps/image\": step 1: expected a JPEG, PNG, BMP, GIF or WebP picture"], false, false),
        (1, 2, &["\"steps/image\": step 0: "], false, true),
        (1, 3, &["\"steps/image\": step 2: ", "(2, 2, 3)", "(2, 3, 3)"], false, false),
    ];
    for (args, decodes) in
        [(&["robot"][..], false), (&["robot", "--decode", "-j", "2"], true), (&["robot[train]"], false)]
    {
        let ran = dir.run(&[&["verify"], args].concat());
        assert_eq!(ran.code, 1, "{}", ran.err);
        let expected: Vec<_> = faults.iter().filter(|fault| decodes || !fault.4).collect();
        let lines: Vec<_> = ran.err.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{args:?}: {}", ran.err);
        for (line, (shard, record, texts, is_note, _)) in lines.iter().zip(&expected) {
            let begin = if *is_note { "tfseek: note: " } else { "tfseek: " };
            let begin = format!("{begin}{}: record {record} at byte ", SHARDS[*shard]);
            assert!(line.starts_with(&begin), "{line} does not begin with {begin}");
            for text in *texts {
                assert!(line.contains(text), "no {text:?} in {line}");
            }
        }
        let n = expected.iter().filter(|fault| !fault.3).count();
        let steps = 8 * 3 + 1;
        assert!(
            ran.out.contains("0 of 2 files sound")
                && ran.out.contains(&format!("\n{steps} steps of episodes: {n} faults, 3 notes\n")),
            "{}",
            ran.out
        );
    }

    let ran = dir.run(&["verify", "--json", "robot"]);
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["ok"], &lines[0]["record"], &lines[0]["steps"]),
        (&false.into(), &1.into(), &12.into()),
        "{}",
        ran.out
    );
    let kinds = |line: &serde_json::Value| {
        line["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fault| fault["kind"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&lines[0]), ["steps", "flag", "missing_flag", "not_a_number"]);
    assert_eq!(kinds(&lines[1]), ["constant_action", "picture", "picture_size"]);
    let last = &lines[1]["faults"][2];
    assert_eq!((&last["record"], &last["step"], &last["note"]), (&3.into(), &2.into(), &false.into()));
    assert_eq!(last["feature"], "steps/image");
}

#[test]
fn verify_accepts_notes_and_counts_what_it_does_not_name() {
    let dir = Folder::new();
    let mut many = robot::Episode::new(0, 40);
    many.actions.fill(f32::NAN);
    let mut few = robot::Episode::new(1, 2);
    few.actions[2] = f32::NAN;
    dir.robot(&[&[many.encode()], &[few.encode()]]);
    let ran = dir.run(&["verify", "robot"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("found NaN as value 0").count(), 10, "{}", ran.err);
    let more = "\ntfseek: feature \"steps/action\": 31 more of the kind not_a_number\n";
    assert!(ran.err.ends_with(more), "{}", ran.err);
    assert!(
        ran.out.contains("2 of 2 files sound")
            && ran.out.contains("42 steps of episodes: 0 faults, 42 notes"),
        "{}",
        ran.out
    );
    let quiet = dir.run(&["verify", "-q", "robot"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
    // Files without a features.json are no episodes.
    fs::remove_file(dir.path("robot/features.json")).unwrap();
    assert!(!dir.run(&["verify", "robot"]).out.contains("steps of episodes"));
}
