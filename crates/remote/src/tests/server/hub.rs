//! The Hugging Face hub: revisions, pages of a tree, and addresses that expire.

use super::answers::{Answer, answer};
use super::buckets::object;
use super::{Request, Shared, State, Stored, TOKEN};

/// The commit of all revisions that exist: `main`, `v1` and `refs/pr/2`.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Files of more bytes are in the large storage.
const LARGE: usize = 100;

impl Shared {
    pub(super) fn hub(&self, request: &Request) -> Answer {
        let mut state = self.state();
        if let Some(rest) = request.path.strip_prefix("/signed/") {
            return signed(&mut state, request, rest);
        }
        let token = request.header("authorization");
        if token.is_some_and(|token| token != format!("Bearer {TOKEN}")) {
            return refused(401, "InvalidToken");
        }
        let path = request.path.trim_start_matches("/api").trim_start_matches("/datasets/");
        let Some(rest) =
            path.strip_prefix("owner/name/").filter(|_| !state.private.contains("hub") || token.is_some())
        else {
            return refused(401, "RepoNotFound");
        };
        let Some((verb, rest)) = rest.split_once('/') else { return refused(404, "EntryNotFound") };
        if verb == "revision" {
            return match rest {
                "main" | "v1" | "refs/pr/2" => {
                    answer(200, format!("{{\"id\":\"owner/name\",\"sha\":\"{COMMIT}\"}}"))
                }
                _ => refused(404, "RevisionNotFound"),
            };
        }
        let Some(rest) = rest.strip_prefix(COMMIT) else { return refused(404, "RevisionNotFound") };
        let rest = rest.trim_start_matches('/');
        if verb == "tree" { tree(&mut state, request, rest) } else { resolve(&mut state, request, rest) }
    }
}

fn refused(status: u16, code: &str) -> Answer {
    answer(status, "{\"error\":\"secret message\"}").with("X-Error-Code", code)
}

/// The name that the hub gives to the content of a file.
fn oid(stored: &Stored) -> &str {
    stored.tag.trim_matches('"')
}

fn tree(state: &mut State, request: &Request, folder: &str) -> Answer {
    state.counts.lists += 1;
    let deep = request.query.get("recursive").is_some_and(|deep| deep == "true");
    let inside = if folder.is_empty() { "hub/".to_owned() } else { format!("hub/{folder}/") };
    let mut entries = std::collections::BTreeMap::new();
    for (name, stored) in state.objects.iter().filter(|(name, _)| name.starts_with(&inside)) {
        let (path, len) = (&name["hub/".len()..], stored.bytes.len());
        if let Some(at) = name[inside.len()..].find('/') {
            let folder = &path[..inside.len() - "hub/".len() + at];
            entries.insert(
                folder,
                format!("{{\"type\":\"directory\",\"path\":\"{folder}\",\"size\":0,\"oid\":\"x\"}}"),
            );
            if !deep {
                continue;
            }
        }
        let lfs = if len > LARGE {
            format!(",\"lfs\":{{\"oid\":\"{}\",\"size\":{len},\"pointerSize\":1}}", oid(stored))
        } else {
            String::new()
        };
        let git = if len > LARGE { "git" } else { oid(stored) };
        let entry =
            format!("{{\"type\":\"file\",\"path\":\"{path}\",\"size\":{len},\"oid\":\"{git}\"{lfs}}}");
        entries.insert(path, entry);
    }
    if entries.is_empty() && !folder.is_empty() {
        return refused(404, "EntryNotFound");
    }
    let from: usize = request.query.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    // Pages are not ordered.
    let mut page: Vec<&String> = entries.values().skip(from).take(state.page).collect();
    page.reverse();
    let body = page.iter().map(|entry| entry.as_str()).collect::<Vec<_>>().join(",");
    let sent = answer(200, format!("[{body}]"));
    let next = from + state.page;
    if next >= entries.len() {
        return sent;
    }
    let host = request.header("host").unwrap();
    let path = request.path.replace(' ', "%20");
    sent.with(
        "Link",
        format!("<http://{host}{path}?recursive={deep}&expand=false&cursor={next}>; rel=\"next\""),
    )
}

fn resolve(state: &mut State, request: &Request, path: &str) -> Answer {
    state.counts.resolves += 1;
    let Some(stored) = state.objects.get(&format!("hub/{path}")).cloned() else {
        return refused(404, "EntryNotFound");
    };
    if stored.bytes.len() <= LARGE {
        // Small files are sent whole.
        return object(&request.without("range"), &stored);
    }
    state.signatures += 1;
    // Another host: the same server by another name.
    let port = request.header("host").unwrap().rsplit_once(':').unwrap().1;
    let location = format!(
        "http://localhost:{port}/signed/{}/{}?Signature=secret",
        state.signatures,
        path.replace(' ', "%20")
    );
    answer(302, "")
        .with("Location", location)
        .with("X-Linked-Etag", stored.tag.clone())
        .with("X-Linked-Size", stored.bytes.len().to_string())
        .with("X-Repo-Commit", COMMIT)
}

fn signed(state: &mut State, request: &Request, rest: &str) -> Answer {
    state.counts.gets += 1;
    let (number, path) = rest.split_once('/').unwrap();
    let leaked = request.header("authorization").is_some();
    if leaked || number.parse::<u64>().unwrap() < state.expired {
        return super::answers::error(if leaked { 400 } else { 403 }, "AccessDenied");
    }
    match state.objects.get(&format!("hub/{path}")) {
        Some(stored) => object(request, stored),
        None => super::answers::error(404, "NoSuchKey"),
    }
}
