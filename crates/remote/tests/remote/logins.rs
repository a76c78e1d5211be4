//! Public buckets, and logins.

use super::server::{Fault, KEY, SECRET, TOKEN};
use super::*;
use tfseek::io::Store;

fn set(options: &mut RemoteOptions, name: &str, value: &str) {
    let variables = options.variables.get_or_insert_default();
    variables.retain(|(other, _)| other != name);
    variables.push((name.to_owned(), value.to_owned()));
}

#[test]
fn public_buckets_need_no_login() {
    for case in Case::all() {
        case.open_all(case.store()).unwrap();
        assert_eq!(case.server.counts().signed, 0, "{:?}", case.server.log());
    }
    // Writing asks for no token, either.
    for scheme in ["s3", "gs", "az"] {
        let case = Case::new(scheme);
        case.store().put(&case.url("new"), b"bytes").unwrap();
        assert_eq!(**case.server.get("bucket/data/new").unwrap().bytes, *b"bytes");
        assert_eq!(case.server.counts().signed, 0);
    }
}

#[test]
fn a_private_bucket_leads_to_the_metadata_server_once() {
    let case = Case::new("s3");
    case.server.private("bucket");
    let mut options = case.remote();
    set(&mut options, "AWS_METADATA_ENDPOINT", &case.server.url());
    let ds = case.open_all(Arc::new(RemoteStore::new(options))).unwrap();
    assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
    let log = case.server.log();
    let anonymous = log.iter().filter(|line| line.contains("bucket") && line.ends_with("anonymous")).count();
    let tokens = log.iter().filter(|line| line.contains("/latest/api/token")).count();
    assert_eq!((anonymous, tokens), (1, 1), "{log:#?}");
}

#[test]
fn variables_and_options_are_used_at_once() {
    let case = Case::new("s3");
    case.server.private("bucket");
    let mut by_variables = case.remote();
    set(&mut by_variables, "AWS_ACCESS_KEY_ID", KEY);
    set(&mut by_variables, "AWS_SECRET_ACCESS_KEY", SECRET);
    let mut by_options = case.remote();
    set(&mut by_options, "AWS_ACCESS_KEY_ID", "WRONG");
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    by_options.storage_options = [("access_key_id", KEY), ("aws_secret_access_key", SECRET)].map(pair).into();
    for options in [by_variables, by_options] {
        assert!(!format!("{options:?}").contains(SECRET));
        let store = Arc::new(RemoteStore::new(options));
        assert!(!format!("{store:?}").contains(SECRET));
        case.server.counts();
        let ds = case.open_all(store).unwrap();
        assert!(!format!("{ds:?}").contains(SECRET));
        let counts = case.server.counts();
        assert_eq!(counts.signed, counts.requests, "{:#?}", case.server.log());
    }
    let google = Case::new("gs");
    google.server.private("bucket");
    let mut options = google.remote();
    set(&mut options, "GOOGLE_BEARER_TOKEN", SECRET);
    assert_eq!(google.open_all(Arc::new(RemoteStore::new(options))).unwrap().len(), 100);
    let counts = google.server.counts();
    assert_eq!(counts.signed, counts.requests);
}

/// A login of a kind that is not known is not read.
#[test]
fn a_skipped_signature_needs_no_login() {
    let google = Case::new("gs");
    let file = google.cache.path().join("login.json");
    std::fs::write(
        &file,
        r#"{"type": "external_account", "audience": "x", "token_url": "http://127.0.0.1:1"}"#,
    )
    .unwrap();
    for value in ["true", "1"] {
        let mut options = google.remote();
        set(&mut options, "GOOGLE_SKIP_SIGNATURE", value);
        set(&mut options, "GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap());
        assert_eq!(google.open_all(Arc::new(RemoteStore::new(options))).unwrap().len(), 100);
        assert_eq!(google.server.counts().signed, 0);
    }
}

#[test]
fn an_error_names_the_variables_and_no_value() {
    let case = Case::new("s3");
    case.server.private("bucket");
    let text = case.open_all(case.store()).unwrap_err().to_string();
    for part in ["403 Forbidden: AccessDenied", "no login", "AWS_ACCESS_KEY_ID", "~/.aws are not read"] {
        assert!(text.contains(part), "{text}");
    }
    assert_no_secret(&text);
    let mut options = case.remote();
    set(&mut options, "AWS_ACCESS_KEY_ID", "AKIDOTHER");
    set(&mut options, "AWS_SECRET_ACCESS_KEY", SECRET);
    let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
    assert!(text.contains("logged in by variables") && !text.contains("AKIDOTHER"), "{text}");
    assert_no_secret(&text);
    // A key without its secret.
    let mut options = case.remote();
    set(&mut options, "AWS_ACCESS_KEY_ID", "AKIDOTHER");
    let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
    assert!(text.contains("the settings of S3 are invalid") && !text.contains("AKIDOTHER"), "{text}");
    let mut options = case.remote();
    options.storage_options = vec![("acces_key_id".to_owned(), KEY.to_owned())];
    let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
    assert!(text.contains("unknown storage option \"acces_key_id\""), "{text}");
    assert_no_secret(&text);
    // A bucket that was public becomes private: the login is looked for then, once.
    let case = Case::new("s3");
    let ds = case.open_all(case.store()).unwrap();
    case.server.private("bucket");
    for _ in 0..2 {
        let text = ds.read(0, &mut Vec::new()).unwrap_err().to_string();
        assert!(text.contains("AWS_ACCESS_KEY_ID"), "{text}");
    }
    for scheme in ["gs", "az"] {
        let case = Case::new(scheme);
        let mut options = case.remote();
        match scheme {
            "gs" => set(&mut options, "GOOGLE_BEARER_TOKEN", "WRONG"),
            _ => set(&mut options, "AZURE_STORAGE_TOKEN", "WRONG"),
        }
        case.server.private("bucket");
        let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
        assert!(text.contains("logged in by variables") && !text.contains("WRONG"), "{text}");
        let name = if scheme == "gs" { "google_bearer_token" } else { "azure_storage_token" };
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn addresses_without_tls_must_be_allowed() {
    for (scheme, variable) in [("s3", "AWS_ALLOW_HTTP"), ("az", "AZURE_ALLOW_HTTP")] {
        let case = Case::new(scheme);
        let mut options = case.remote();
        set(&mut options, variable, "");
        let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
        assert!(text.contains(&format!("needs {variable}=true")), "{text}");
        assert_eq!(case.server.counts().requests, 0);
    }
    let case = Case::new("az");
    let mut options = case.remote();
    set(&mut options, "AZURE_STORAGE_ACCOUNT_NAME", "");
    let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
    assert!(text.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{text}");
}

#[test]
fn emulators_and_payers() {
    let case = Case::new("gs");
    let mut options = case.remote();
    set(&mut options, "GOOGLE_BASE_URL", "");
    set(&mut options, "STORAGE_EMULATOR_HOST", &case.server.address.to_string());
    set(&mut options, "GOOGLE_CLOUD_QUOTA_PROJECT", "payer");
    let ds = case.open_all(Arc::new(RemoteStore::new(options))).unwrap();
    assert_eq!((ds.len(), case.server.counts().signed), (100, 0));
    assert!(case.server.log().iter().all(|line| line.ends_with("payer=payer")), "{:#?}", case.server.log());
}

#[test]
fn the_token_of_the_hub_is_used_at_once_and_stays_there() {
    let case = Case::new("hf");
    case.server.private("hub");
    let text = case.open_all(case.store()).unwrap_err().to_string();
    assert!(text.contains("private; no token: HF_TOKEN"), "{text}");
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("token"), format!("{TOKEN}\n")).unwrap();
    let mut by_file = case.remote();
    set(&mut by_file, "HF_HOME", home.path().to_str().unwrap());
    let mut by_variable = case.remote();
    set(&mut by_variable, "HF_TOKEN", TOKEN);
    for options in [by_file, by_variable] {
        // The addresses elsewhere refuse requests with a token.
        let ds = case.open_all(Arc::new(RemoteStore::new(options))).unwrap();
        assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
    }
    let mut options = case.remote();
    set(&mut options, "HF_TOKEN", "WRONG");
    let text = case.open_all(Arc::new(RemoteStore::new(options))).unwrap_err().to_string();
    assert!(text.contains("401 Unauthorized (the token was sent)") && !text.contains("WRONG"), "{text}");
    case.server.fail("tree", Fault::Status(403), 1);
    let text = case.open_all(case.store()).unwrap_err().to_string();
    assert_no_secret(&text);
}

#[test]
fn buckets_that_may_not_be_listed_are_read_by_name() {
    for scheme in ["s3", "gs", "az"] {
        let case = Case::new(scheme);
        case.server.refuse_lists();
        let ds = case.open(NAMES[0]).unwrap();
        assert_eq!((labels(&ds), ds.warnings().len()), ((0..60).collect(), 0), "{:?}", ds.warnings());
        let ds = case.open("train-0000{0..1}-of-00002.tfrecord").unwrap();
        assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
        for name in ["train-*", "none.tfrecord", "none-{1,2}.tfrecord", ""] {
            let text = case.open(name).unwrap_err().to_string();
            assert!(text.contains("403 Forbidden: AccessDenied (no login"), "{text}");
        }
    }
}
