//! Arguments of `tfseek view`.

use super::{AccessArgs, PathsArgs, PayloadArgs, WhereArgs};
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// Help after the options of `tfseek view`.
pub(super) const AFTER_VIEW: &str = "\
The page is served to this machine only, and the link contains a token. From elsewhere: ssh -L 7717:127.0.0.1:7717 HOST, then open the \
link. Closing the page or Ctrl-C ends the command.";

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) paths: PathsArgs,
    /// Port to listen on; 0: any free one [default: the first free one from 7717 on]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Do not open a browser. None is opened without a terminal or a display, and over ssh
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Go on after the last tab with the page is closed. By default the command ends then
    #[arg(long)]
    pub(crate) stay: bool,
    /// Second set of files, compared with the first; may be repeated
    #[arg(long, value_name = "PATHS")]
    pub(crate) against: Vec<PathBuf>,
    /// Roles of features as JSON, such as {"image": "picture", "label": "y"}; other roles are guessed
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Write a report to this file instead: statistics, schema and 60 records, in one page without scripts
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["port", "against", "host", "allow_host"])]
    pub(crate) html: Option<PathBuf>,
    /// With --html: replace an existing file
    #[arg(long, requires = "html")]
    pub(crate) force: bool,
    /// Address to listen on. One that other machines can reach requires --allow-host
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Name of this machine by which others may reach the page; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    #[command(flatten)]
    pub(crate) select: WhereArgs,
    #[command(flatten)]
    pub(crate) payload: PayloadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}
