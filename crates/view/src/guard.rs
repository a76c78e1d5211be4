//! The rules that decide which requests are answered: names of hosts, the access token, and the sites that
//! requests come from.

use crate::http::{Parsed, Response};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of tickets that were not used. A program that opens more browsers loses the oldest
/// ones.
const MAX_TICKETS: usize = 16;

/// The rules of one server.
pub(crate) struct Guard {
    token: Secret,
    /// The name of the cookie. Cookies are shared by all ports of a host, so the name has the port.
    cookie: String,
    allowed: Vec<Name>,
    tickets: Mutex<Vec<(Secret, Instant)>>,
    ticket_life: Duration,
}

/// A decision about a request.
pub(crate) enum Admission {
    /// The page may be sent. It contains no data.
    Page,
    /// The request knows the token, so it may see data.
    Api,
    /// The response: a redirection, or an error.
    Answer(Response),
}

impl Guard {
    /// Makes the rules of a server that listens on `port`, with a new token. Requests may name a loopback
    /// address, `localhost`, or one of `allowed`. A ticket is valid for `ticket_life`.
    pub(crate) fn new(port: u16, allowed: &[String], ticket_life: Duration) -> io::Result<Guard> {
        Ok(Guard {
            token: Secret::new()?,
            cookie: format!("tfseek-{port}"),
            allowed: allowed.iter().map(|name| Name::allowed(name)).collect::<io::Result<_>>()?,
            tickets: Mutex::default(),
            ticket_life,
        })
    }

    /// Returns the token, for the link that is shown to the user.
    pub(crate) fn token(&self) -> &str {
        &self.token.0
    }

    /// Returns a ticket, which replaces the token once. Other users of this machine see the arguments of its
    /// processes, so a browser is started with a ticket. It is worth nothing after the browser has used it.
    pub(crate) fn ticket(&self) -> io::Result<String> {
        let secret = Secret::new()?;
        let ticket = secret.0.clone();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() >= MAX_TICKETS {
            tickets.remove(0);
        }
        tickets.push((secret, Instant::now()));
        Ok(ticket)
    }

    /// Decides about a request.
    pub(crate) fn admit(&self, parsed: &Parsed) -> Admission {
        // Another site may let its own name lead to this machine, and its script then counts as coming from
        // here. Its name remains in this header.
        let host = parsed.host.as_deref();
        if !host.is_some_and(|host| names_server(host, &self.allowed)) {
            let message = match host {
                Some(host) => format!("this server does not answer to the host name {host:?}"),
                None => "expected a header Host".to_owned(),
            };
            return Admission::Answer(Response::error(400, &message));
        }
        let request = &parsed.request;
        if request.path == "/api" || request.path.starts_with("/api/") {
            return self.admit_to_data(parsed);
        }
        match request.query("t") {
            // Programs that show a preview of a link send HEAD. They use no ticket up.
            Some(secret) if request.path == "/" && !request.is_head && self.redeem(secret) => {
                let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.token.0);
                let response = Response::new(303, "text/plain", "").with("Location", "/");
                Admission::Answer(response.with("Set-Cookie", cookie))
            }
            // The page asks for the token.
            _ => Admission::Page,
        }
    }

    fn admit_to_data(&self, parsed: &Parsed) -> Admission {
        let refused = |message| Admission::Answer(Response::error(403, message));
        // Old browsers send no such header. Another port of this machine is the same site, but not the same
        // origin.
        if !matches!(parsed.fetch_site.as_deref(), None | Some("same-origin" | "none")) {
            return refused("this request comes from another site");
        }
        let cookies = parsed.cookie.as_deref().unwrap_or_default().split(';');
        let mut own =
            cookies.filter_map(|cookie| cookie.trim().strip_prefix(&self.cookie)?.strip_prefix('='));
        if !own.any(|value| self.token.equals(value)) {
            return refused("expected the token of this server: open the link that it printed");
        }
        Admission::Api
    }

    /// Returns whether a secret is the token or a valid ticket, and uses the ticket up.
    fn redeem(&self, secret: &str) -> bool {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|(_, made)| made.elapsed() < self.ticket_life);
        let before = tickets.len();
        tickets.retain(|(ticket, _)| !ticket.equals(secret));
        self.token.equals(secret) || tickets.len() < before
    }
}

/// Returns whether a `Host` header names this machine or an allowed host. Every port is right, because
/// tunnels change it.
pub(crate) fn names_server(host: &str, allowed: &[Name]) -> bool {
    Name::of_header(host).is_some_and(|name| match &name {
        Name::Text(text) if text == "localhost" => true,
        Name::Address(IpAddr::V4(address)) if address.is_loopback() => true,
        Name::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)) => true,
        name => allowed.contains(name),
    })
}

/// 128 random bits as 32 hex digits.
struct Secret(String);

impl Secret {
    fn new() -> io::Result<Secret> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(format!("random numbers: {e}")))?;
        Ok(Secret(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// Compares without stopping at the first difference, so that the time does not depend on the number of
    /// right digits. The length is no secret. `black_box` keeps the compiler from stopping early.
    fn equals(&self, other: &str) -> bool {
        let pairs = self.0.bytes().zip(other.bytes());
        let difference = pairs.fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
        self.0.len() == other.len() && difference == 0
    }
}

/// The name of a host. Names are compared without case, addresses as numbers.
#[derive(Debug, PartialEq)]
pub(crate) enum Name {
    Text(String),
    Address(IpAddr),
}

impl Name {
    /// Parses a name that the user allows: a name or an address, without a port.
    fn allowed(name: &str) -> io::Result<Name> {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let address = bare.unwrap_or(name).parse::<Ipv6Addr>().map(IpAddr::V6);
        address.ok().map(Name::Address).or_else(|| Name::of_text(name)).ok_or_else(|| {
            let message = format!("allow_host: expected the name of a host without a port, found {name:?}");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }

    /// Parses the value of a `Host` header: a name or an address, and maybe a port.
    fn of_header(host: &str) -> Option<Name> {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((address, port)) => (Some(Name::Address(IpAddr::V6(address.parse().ok()?))), port),
            None => {
                let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
                (Name::of_text(name), port)
            }
        };
        let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
        name.filter(|_| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
    }

    fn of_text(name: &str) -> Option<Name> {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Name::Address(IpAddr::V4(address)));
        }
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        (!name.is_empty() && name.bytes().all(is_name)).then(|| Name::Text(name.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allowed: &[&str]) -> Guard {
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        Guard::new(7717, &allowed, Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn hosts_are_this_machine_or_allowed() {
        let guard = guard(&["Gpu-1.example", "192.168.0.7", "fd00::7", "[fd00::8]"]);
        for host in [
            "localhost",
            "LocalHost:80",
            "localhost:65535",
            "127.0.0.1",
            "127.0.0.1:7717",
            "127.255.255.254:1",
            "[::1]",
            "[::1]:7717",
            "[0:0:0:0:0:0:0:1]:7717",
            "gpu-1.example",
            "GPU-1.EXAMPLE:7717",
            "192.168.0.7:7717",
            "[fd00:0::7]:1",
            "[fd00::8]",
        ] {
            assert!(names_server(host, &guard.allowed), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "xlocalhost",
            "127.0.0.1.evil.example",
            "127.0.0.1.nip.io:7717",
            "128.0.0.1",
            "0.0.0.0",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "localhost:",
            "localhost:+80",
            "localhost:80:80",
            "localhost:65536",
            "localhost:7717@evil.example",
            "evil.example@localhost",
            "localhost/evil",
            "localhost, evil.example",
            "localhost evil.example",
            " localhost",
            "::1",
            "::1:7717",
            "[::1",
            "[::1]7717",
            "[::1]evil",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "[127.0.0.1]",
            "[localhost]",
            "[fe80::1%eth0]",
            "x[::1]",
            "gpu-2.example",
            "gpu-1.example.",
            "192.168.0.70",
        ] {
            assert!(!names_server(host, &guard.allowed), "{host}");
        }
    }

    #[test]
    fn allowed_hosts_are_names() {
        for name in [
            "",
            "*",
            "*.example",
            "http://a",
            "a:80",
            "127.0.0.1:80",
            "a b",
            "a,b",
            "[a]",
            "[::1]:80",
            "\u{e9}",
        ] {
            let error = Name::allowed(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let expected = format!("allow_host: expected the name of a host without a port, found {name:?}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn secrets_differ() {
        let a = Secret::new().unwrap();
        let b = Secret::new().unwrap();
        assert_ne!(a.0, b.0);
        assert!(a.0.len() == 32 && a.0.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert!(a.equals(&a.0));
        let mut other = a.0.clone();
        let last = if other.pop() == Some('0') { '1' } else { '0' };
        for wrong in
            ["", &a.0[..31], &format!("{}0", a.0), &format!("{other}{last}"), &a.0.to_uppercase(), &b.0]
        {
            // A token of digits only is its own upper case.
            assert!(!a.equals(wrong) || wrong == a.0, "{wrong}");
        }
        assert!(!a.equals(&a.0.repeat(2)));
    }

    #[test]
    fn a_ticket_is_used_once() {
        let guard = guard(&[]);
        let first = guard.ticket().unwrap();
        let second = guard.ticket().unwrap();
        assert!(guard.redeem(&first));
        assert!(!guard.redeem(&first));
        assert!(guard.redeem(&second));
        assert!(!guard.redeem(""));
        assert!(guard.redeem(guard.token()) && guard.redeem(guard.token()), "the token stays valid");
        let old = Guard::new(1, &[], Duration::ZERO).unwrap();
        assert!(!old.redeem(&old.ticket().unwrap()), "its time is over");
        let tickets: Vec<_> = (0..MAX_TICKETS + 1).map(|_| guard.ticket().unwrap()).collect();
        assert!(!guard.redeem(&tickets[0]) && guard.redeem(&tickets[1]));
    }
}
