//! Options of a viewer.

use crate::conversation::Limits;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tfseek::batch::ColumnDecoder;
use tfseek::{Filter, Schema};

/// Options of a [`Viewer`](crate::Viewer). By default it listens on 127.0.0.1, and roles are guessed.
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    /// The address to listen on. One that other machines can reach requires a name in
    /// [`allow_host`](ViewOptions::allow_host). Default: 127.0.0.1.
    pub host: Option<IpAddr>,
    /// The port; 0: any free one. Default: the first free one from 7717 to 7727, or any.
    pub port: Option<u16>,
    /// Names and addresses of this machine that requests may use, without ports. `localhost` and loopback
    /// addresses are always allowed.
    pub allow_host: Vec<String>,
    /// The condition that the page begins with. Default: all records.
    pub condition: Option<Filter>,
    /// A schema with pictures, and what decodes them: training steps show them as they are fed. Default: none.
    pub fed: Option<(Schema, Arc<dyn ColumnDecoder>)>,
    /// Number of [`threads`](tfseek::threads) of a search, of statistics and of verification. Default: one
    /// per processor, at most 8. 0: the thread that asks.
    pub threads: Option<usize>,
    /// The times after which [`Viewer::serve`](crate::Viewer::serve) ends with the page. The first begins
    /// when the last tab is closed. The second begins when the connection that a browser with the page holds
    /// is closed otherwise, as by a crash. Default: none, so it does not end with the page.
    pub end_times: Option<[Duration; 2]>,
    pub(crate) roles: Map<String, Value>,
    pub(crate) limits: Limits,
}

impl ViewOptions {
    /// The usual [`end_times`](ViewOptions::end_times): 5 seconds, because a reload closes a tab and opens
    /// another one, and 60 seconds.
    pub const END_TIMES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
}
