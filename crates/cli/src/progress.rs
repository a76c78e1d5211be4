//! Progress bars on standard error, drawn on a terminal or with `--progress`.

use crate::console::Console;
use crate::store;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tfseek::Compression;
use tfseek_tools::WriteProgress;

/// Returns a bar of bytes, a count of them without a known total, or a hidden bar.
pub(crate) fn bytes(console: &Console, label: &'static str, bytes: impl Into<Option<u64>>) -> ProgressBar {
    let bar_of = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
    let count_of = "{spinner} {msg} {decimal_bytes} {decimal_bytes_per_sec}";
    bar(console, label, bytes.into(), [bar_of, count_of])
}

/// Returns a bar of steps, a count of them without a known total, or a hidden bar.
pub(crate) fn steps(console: &Console, label: &'static str, steps: Option<u64>) -> ProgressBar {
    let bar_of = "{msg} {wide_bar} {pos}/{len} steps {eta}";
    bar(console, label, steps, [bar_of, "{spinner} {msg} {pos} steps {per_sec}"])
}

/// Returns a bar of records, or a hidden one.
pub(crate) fn records(console: &Console, label: &'static str, records: u64) -> ProgressBar {
    bar(console, label, Some(records), ["{msg} {wide_bar} {pos}/{len} records {eta}"; 2])
}

/// The templates are of a bar, and of a count without a known total.
fn bar(
    console: &Console,
    label: &'static str,
    len: Option<u64>,
    [bar_of, count_of]: [&str; 2],
) -> ProgressBar {
    let visible = !console.global.quiet && (console.global.progress || std::io::stderr().is_terminal());
    if !visible || len == Some(0) {
        return ProgressBar::hidden();
    }
    // With `--progress` and no terminal, four plain lines per second are printed.
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::term_like_with_hz(Box::new(PlainLines), 4)
    };
    let bar = ProgressBar::with_draw_target(len, target).with_message(label);
    if let Ok(style) = ProgressStyle::with_template(if len.is_some() { bar_of } else { count_of }) {
        bar.set_style(style);
    }
    if len.is_none() {
        // Draws the count, which a short run may never advance.
        bar.unset_length();
    }
    bar
}

/// Ends a bar. After a success it is drawn once more, so that the plain lines of `--progress` end at the whole.
pub(crate) fn end(bar: &ProgressBar, is_success: bool) {
    if is_success {
        bar.finish();
    }
    bar.finish_and_clear();
}

/// Returns a progress callback for the library that advances a bar of bytes. It never cancels: an interrupt
/// kills the process.
pub(crate) fn callback(bar: &ProgressBar) -> impl Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static {
    let bar = bar.clone();
    move |bytes| {
        if bytes > 0 {
            bar.inc(bytes);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the callbacks for files that are written, which set the length of a bar of bytes and advance it.
pub(crate) fn of_writing(bar: &ProgressBar) -> WriteProgress {
    let expected = bar.clone();
    WriteProgress {
        expect: Arc::new(move |bytes| expected.set_length(bytes)),
        advance: Arc::new(callback(bar)),
    }
}

/// Progress of reading one file in order, on a bar of bytes on disk.
pub(crate) struct FileProgress<'a> {
    bar: &'a ProgressBar,
    size: u64,
    /// Bytes by which the bar was advanced.
    reported: u64,
    compression: Compression,
}

impl FileProgress<'_> {
    /// The bar advances by a compressed file at its end.
    pub(crate) fn new<'a>(bar: &'a ProgressBar, path: &Path, compression: Compression) -> FileProgress<'a> {
        let size = store::size(path).unwrap_or(0);
        FileProgress { bar, size, reported: 0, compression }
    }

    /// Advances the bar to this offset in the record stream, once per MiB.
    pub(crate) fn read_to(&mut self, offset: u64) {
        let more = offset.saturating_sub(self.reported);
        if self.compression == Compression::None && more > 1 << 20 {
            self.bar.inc(more);
            self.reported = offset;
        }
    }
}

impl Drop for FileProgress<'_> {
    /// Advances the bar to the end of the file.
    fn drop(&mut self) {
        self.bar.inc(self.size.saturating_sub(self.reported));
    }
}

/// Returns the total size of files in bytes. A file whose size is not available counts as 0.
pub(crate) fn total_size(paths: &[impl AsRef<Path>]) -> u64 {
    paths.iter().filter_map(|path| store::size(path.as_ref())).sum()
}

/// A draw target that prints plain lines to standard error.
#[derive(Debug)]
struct PlainLines;

impl indicatif::TermLike for PlainLines {
    fn width(&self) -> u16 {
        100
    }

    fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn write_line(&self, s: &str) -> std::io::Result<()> {
        eprintln!("{s}");
        Ok(())
    }

    fn write_str(&self, s: &str) -> std::io::Result<()> {
        match s.trim_end() {
            "" => Ok(()),
            line => self.write_line(line),
        }
    }

    fn clear_line(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}
