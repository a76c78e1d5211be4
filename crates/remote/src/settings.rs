//! Options of a store, and the variables that it reads.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a [`RemoteStore`](crate::RemoteStore).
///
/// A store is made again from them in a forked process. `Debug` shows no value.
#[derive(Clone)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Options of the stores by their names in lower case, e.g. `aws_access_key_id` or `endpoint`. They
    /// precede variables.
    pub storage_options: Vec<(String, String)>,
    /// The variables to read. By default the variables of the process, when the store is made.
    pub variables: Option<Vec<(String, String)>>,
    /// The largest number of requests at a time that fetch announced bytes. 256 by default. A store begins
    /// with 8 of 2 MiB, or up to 32 smaller ones, and makes more while this makes reading faster. Each has a
    /// connection.
    pub requests: usize,
    /// The largest number of announced bytes that are kept until they are read. 256 MiB by default.
    pub memory: u64,
    /// How often a request is repeated that fails for a while. 10 by default, in at most three minutes.
    pub retries: usize,
    /// How long to wait for the next bytes of an answer. 10 seconds by default. The head of an answer, and
    /// then each 64 KiB, may take three times as long.
    pub read_timeout: Duration,
    /// A folder for bytes of objects, which all processes of the machine share. By default the variable
    /// `TFSEEK_CACHE_DIR`, or none. Objects without a time and a version are not kept.
    pub cache_dir: Option<PathBuf>,
    /// The largest number of bytes in that folder, which is needed with it. By default the variable
    /// `TFSEEK_CACHE_BYTES`, such as `500000000000`.
    pub cache_bytes: Option<u64>,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            storage_options: Vec::new(),
            variables: None,
            // 128 of 100 KB take 128 MB/s of a link, at a latency of 100 ms.
            requests: 256,
            memory: 256 << 20,
            retries: 10,
            read_timeout: Duration::from_secs(10),
            cache_dir: None,
            cache_bytes: None,
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.storage_options.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("RemoteOptions")
            .field("storage_options", &names)
            .field("requests", &self.requests)
            .field("memory", &self.memory)
            .field("retries", &self.retries)
            .field("read_timeout", &self.read_timeout)
            .field("cache_dir", &self.cache_dir)
            .field("cache_bytes", &self.cache_bytes)
            .finish_non_exhaustive()
    }
}

/// The variables of the cache on disk.
const CACHE_DIR: &str = "TFSEEK_CACHE_DIR";
const CACHE_BYTES: &str = "TFSEEK_CACHE_BYTES";

/// Variables with one meaning, without `AWS_`: an option of a group stands for all of it, whatever their
/// order among themselves is.
const GROUPS: [&[&str]; 3] = [
    &["endpoint", "endpoint_url", "endpoint_url_s3"],
    &["region", "default_region"],
    &["access_key_id", "secret_access_key", "session_token", "token"],
];

/// Returns true if an option replaces a variable of its group.
fn is_replaced(variable: &str, options: &BTreeMap<String, String>) -> bool {
    let Some(name) = variable.strip_prefix("AWS_").map(str::to_ascii_lowercase) else { return false };
    let group = GROUPS.into_iter().find(|group| group.contains(&name.as_str()));
    let is_given = |option: &String| {
        group.is_some_and(|group| group.contains(&option.strip_prefix("aws_").unwrap_or(option)))
    };
    options.keys().any(is_given)
}

/// The first and the longest pause before a request is repeated.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(15)];

/// How long repeated attempts of a request may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How long a connection may take to open.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// The options, and the variables at the time when the store was made.
#[derive(Clone)]
pub(crate) struct Settings {
    options: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    pub(crate) requests: usize,
    pub(crate) memory: u64,
    pub(crate) retries: usize,
    pub(crate) read_timeout: Duration,
    cache_dir: Option<PathBuf>,
    cache_bytes: Option<u64>,
}

impl Settings {
    pub(crate) fn new(options: RemoteOptions) -> Settings {
        let of_process = || {
            let all = std::env::vars_os();
            all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect()
        };
        let variables: Vec<_> = options.variables.unwrap_or_else(of_process);
        let lower = |(name, value): (String, String)| (name.to_ascii_lowercase(), value);
        let given: BTreeMap<_, _> = options.storage_options.into_iter().map(lower).collect();
        let is_set = |(name, value): &(String, String)| !value.is_empty() && !is_replaced(name, &given);
        Settings {
            variables: variables.into_iter().filter(is_set).collect(),
            options: given,
            requests: options.requests.max(1),
            memory: options.memory,
            retries: options.retries,
            read_timeout: options.read_timeout,
            cache_dir: options.cache_dir,
            cache_bytes: options.cache_bytes,
        }
    }

    /// Returns how long the head of an answer, and each step of its bytes, may take.
    pub(crate) fn step_time(&self) -> Duration {
        self.read_timeout.saturating_mul(3)
    }

    /// Returns the folder of the cache and its largest number of bytes. `None` if there is no cache.
    ///
    /// # Errors
    /// One of the two without the other, and a variable that is no number.
    pub(crate) fn cache(&self) -> Result<Option<(PathBuf, u64)>, String> {
        let folder = self.cache_dir.clone().or_else(|| self.variable(CACHE_DIR).map(PathBuf::from));
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("{CACHE_BYTES}: expected a number of bytes, found {text:?}"))
        };
        let bytes = match self.cache_bytes {
            Some(bytes) => Some(bytes),
            None => self.variable(CACHE_BYTES).map(number).transpose()?,
        };
        match (folder, bytes) {
            (Some(folder), Some(bytes)) => Ok(Some((folder, bytes))),
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(format!("a cache on disk has a limit: expected cache_bytes or {CACHE_BYTES} too"))
            }
            (None, Some(_)) => {
                Err(format!("a cache on disk has a folder: expected cache_dir or {CACHE_DIR} too"))
            }
        }
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the first of these options or, if there is none, variables.
    pub(crate) fn first(&self, options: &[&str], variables: &[&str]) -> Option<&str> {
        let option = options.iter().find_map(|name| self.options.get(*name).map(String::as_str));
        option.or_else(|| variables.iter().find_map(|name| self.variable(name)))
    }

    /// Returns the names of the options.
    pub(crate) fn options(&self) -> impl Iterator<Item = &str> {
        self.options.keys().map(String::as_str)
    }

    /// Returns the variables whose names begin with `prefix`, in lower case, and then the options, which
    /// precede them.
    pub(crate) fn all(&self, prefix: &str) -> impl Iterator<Item = (String, &str)> {
        let variables = self.variables.iter().filter(move |(name, _)| name.starts_with(prefix));
        let variables = variables.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()));
        variables.chain(self.options.iter().map(|(name, value)| (name.clone(), value.as_str())))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_precede_variables_and_are_not_shown() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let options = RemoteOptions {
            storage_options: [("AWS_Region", "from-option"), ("token", "hidden")].map(pair).into(),
            variables: Some([("AWS_REGION", "from-variable"), ("HF_TOKEN", ""), ("X", "1")].map(pair).into()),
            ..RemoteOptions::default()
        };
        assert!(!format!("{options:?}").contains("hidden") && format!("{options:?}").contains("token"));
        let settings = Settings::new(options);
        assert_eq!(settings.first(&["aws_region"], &["AWS_REGION"]), Some("from-option"));
        assert_eq!(settings.first(&["region"], &["X"]), Some("1"));
        assert_eq!(settings.variable("HF_TOKEN"), None);
        let last: BTreeMap<_, _> = settings.all("AWS_").collect();
        assert_eq!(last.get("aws_region"), Some(&"from-option"));
        assert!(!format!("{settings:?}").contains("from-"));
    }

    /// A session's token belongs to the keys beside it, and the endpoint of S3 precedes the endpoint of all
    /// services.
    #[test]
    fn an_option_replaces_the_variables_of_its_group() {
        const ALL: [&str; 7] = [
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT_URL_S3",
            "AWS_REGION",
            "AWS_DEFAULT_REGION",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ];
        for (option, replaced) in [
            ("endpoint", &ALL[..2]),
            ("AWS_Endpoint_URL", &ALL[..2]),
            ("aws_region", &ALL[2..4]),
            ("access_key_id", &ALL[4..]),
            ("user_project", &[]),
        ] {
            let variables = ALL.map(|name| (name.to_owned(), "of the process".to_owned()));
            let settings = Settings::new(RemoteOptions {
                storage_options: vec![(option.to_owned(), "given".to_owned())],
                variables: Some(variables.into()),
                ..RemoteOptions::default()
            });
            for name in ALL {
                assert_eq!(settings.variable(name).is_none(), replaced.contains(&name), "{option} {name}");
            }
        }
    }

    #[test]
    fn a_cache_needs_a_folder_and_a_limit() {
        let cache = |dir: Option<&str>, bytes, variables: &[(&str, &str)]| {
            let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let mut options = RemoteOptions { variables: Some(Vec::new()), ..RemoteOptions::default() };
            options.variables = Some(variables.iter().map(pair).collect());
            (options.cache_dir, options.cache_bytes) = (dir.map(PathBuf::from), bytes);
            Settings::new(options).cache()
        };
        assert_eq!(cache(None, None, &[]), Ok(None));
        assert_eq!(cache(Some("a"), Some(7), &[]), Ok(Some(("a".into(), 7))));
        let both = [("TFSEEK_CACHE_DIR", "b"), ("TFSEEK_CACHE_BYTES", "9")];
        assert_eq!(cache(None, None, &both), Ok(Some(("b".into(), 9))));
        assert_eq!(cache(Some("a"), None, &both), Ok(Some(("a".into(), 9))));
        assert_eq!(cache(None, Some(0), &both), Ok(Some(("b".into(), 0))));
        let word = |found: Result<_, String>| found.unwrap_err();
        assert!(word(cache(Some("a"), None, &[])).contains("cache_bytes or TFSEEK_CACHE_BYTES"));
        assert!(word(cache(None, Some(7), &[])).contains("cache_dir or TFSEEK_CACHE_DIR"));
        assert!(word(cache(Some("a"), None, &[("TFSEEK_CACHE_BYTES", "1 GB")])).contains("found \"1 GB\""));
    }
}
