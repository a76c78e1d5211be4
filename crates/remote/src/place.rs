//! The server and the account that select an object besides its URL.

use crate::address::{Address, Kind};
use crate::cloud::setting;
use crate::hub::{self, HUB};
use crate::settings::Settings;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use tfseek::io::bare_url;

/// The beginnings of the names of regions in which a bucket may have the name of a bucket elsewhere.
const PARTITIONS: [&str; 5] = ["cn-", "us-gov-", "us-iso", "eu-iso", "eusc-"];

/// Selects the objects of a store besides their URLs, without secrets: a server, an account, and a user or a
/// region where two may have other buckets of one name. Empty for the services themselves.
pub(crate) struct Places {
    s3: String,
    google: String,
    azure: String,
    /// The place of URLs that have the account.
    azure_account: String,
    hub: String,
}

impl Places {
    pub(crate) fn new(settings: &Settings) -> Places {
        let joined = |parts: Vec<String>| {
            if parts.iter().all(String::is_empty) { String::new() } else { format!("{parts:?}") }
        };
        Places {
            s3: joined(of_s3(settings)),
            google: server(of_google(settings)),
            azure: joined(of_azure(settings, false)),
            azure_account: joined(of_azure(settings, true)),
            hub: server(Some(hub::endpoint(settings)).filter(|endpoint| *endpoint != HUB)),
        }
    }

    pub(crate) fn of(&self, address: Address<'_>) -> &str {
        match address.kind {
            Kind::S3 => &self.s3,
            Kind::Google => &self.google,
            Kind::Azure if address.bucket().contains('@') => &self.azure_account,
            Kind::Azure => &self.azure,
            Kind::Web => "",
            Kind::Hub => &self.hub,
        }
    }
}

/// Returns an address without its login.
fn server(address: Option<&str>) -> String {
    address.map_or_else(String::new, |address| bare_url(address.trim_end_matches('/')))
}

fn of_s3(settings: &Settings) -> Vec<String> {
    use AmazonS3ConfigKey::{
        AccessKeyId, DefaultRegion, Endpoint, Region, S3Endpoint, Token, VirtualHostedStyleRequest,
    };
    let found = |key: AmazonS3ConfigKey| setting(settings, Kind::S3, key.as_ref());
    let Some(endpoint) = found(S3Endpoint).or_else(|| found(Endpoint)) else {
        let region = found(Region).or_else(|| found(DefaultRegion)).unwrap_or_default();
        let partition = PARTITIONS.iter().find(|partition| region.starts_with(**partition));
        return partition.map(|partition| (*partition).to_owned()).into_iter().collect();
    };
    // Servers may have buckets of each user. The names of users of a session change with it.
    let user = found(AccessKeyId).filter(|_| found(Token).is_none());
    let style = found(VirtualHostedStyleRequest).unwrap_or_default();
    vec![server(Some(endpoint)), style.to_ascii_lowercase(), user.unwrap_or_default().to_owned()]
}

fn of_google(settings: &Settings) -> Option<&str> {
    let base = setting(settings, Kind::Google, GoogleConfigKey::BaseUrl.as_ref());
    base.or_else(|| settings.variable("STORAGE_EMULATOR_HOST"))
        .filter(|base| base.trim_end_matches('/') != "https://storage.googleapis.com")
}

fn of_azure(settings: &Settings, has_account: bool) -> Vec<String> {
    let found = |key: AzureConfigKey| setting(settings, Kind::Azure, key.as_ref());
    let account = found(AzureConfigKey::AccountName).filter(|_| !has_account).unwrap_or_default();
    let emulator =
        found(AzureConfigKey::UseEmulator).filter(|is_used| !is_used.eq_ignore_ascii_case("false"));
    let emulator = emulator.map(|_| settings.variable("AZURITE_BLOB_STORAGE_URL").unwrap_or("emulator"));
    vec![account.to_owned(), server(found(AzureConfigKey::Endpoint)), server(emulator)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RemoteOptions;

    fn place_of(url: &str, variables: &[(&str, &str)]) -> String {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables = Some(variables.iter().map(pair).collect());
        let settings = Settings::new(RemoteOptions { variables, ..RemoteOptions::default() });
        Places::new(&settings).of(Address::of(url).unwrap()).to_owned()
    }

    #[test]
    fn servers_accounts_and_partitions_are_places() {
        const AZURE: &str = "az://c/x";
        let all = [
            place_of("s3://b/x", &[("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "a")]),
            place_of("s3://b/x", &[("AWS_REGION", "cn-north-1")]),
            place_of("s3://b/x", &[("AWS_ENDPOINT_URL", "http://one")]),
            place_of("s3://b/x", &[("AWS_ENDPOINT_URL", "http://one"), ("AWS_ACCESS_KEY_ID", "a")]),
            place_of(
                "s3://b/x",
                &[("AWS_ENDPOINT_URL", "http://one"), ("AWS_ENDPOINT_URL_S3", "http://two")],
            ),
            place_of("gs://b/x", &[("STORAGE_EMULATOR_HOST", "one:1")]),
            place_of(AZURE, &[("AZURE_STORAGE_ACCOUNT_NAME", "one")]),
            place_of(AZURE, &[("AZURE_STORAGE_ACCOUNT_NAME", "two")]),
            place_of(
                AZURE,
                &[("AZURE_STORAGE_ACCOUNT_NAME", "two"), ("AZURE_STORAGE_ENDPOINT", "http://one")],
            ),
            place_of("hf://datasets/o/n/x", &[("HF_ENDPOINT", "http://one/")]),
        ];
        for (k, one) in all.iter().enumerate() {
            assert_eq!(all.iter().filter(|other| *other == one).count(), 1, "{k}: {one}");
        }
        assert_eq!(all[0], "");
        for (url, variables) in [
            ("s3://b/x", [("AWS_SECRET_ACCESS_KEY", "s")]),
            ("gs://b/x", [("GOOGLE_BASE_URL", "https://storage.googleapis.com/")]),
            ("abfss://c@a.dfs.core.windows.net/x", [("AZURE_STORAGE_ACCOUNT_NAME", "other")]),
            ("hf://datasets/o/n/x", [("HF_ENDPOINT", "https://huggingface.co/")]),
            ("https://h/x", [("AWS_ENDPOINT_URL", "http://one")]),
        ] {
            assert_eq!(place_of(url, &variables), "", "{url}");
        }
        // Sessions end, and an address may have a login.
        let session = [
            ("AWS_ENDPOINT_URL", "http://u:secret@one/"),
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SESSION_TOKEN", "secret"),
        ];
        assert_eq!(place_of("s3://b/x", &session), all[2]);
    }
}
