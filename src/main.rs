//! The only reader of arguments, environment, clock and signals: parse, run, exit code.
#![allow(
    clippy::disallowed_methods,
    reason = "clock and environment are read here and handed on"
)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use paysweep::cli::{self, Cli, LogFormat};
use paysweep::command::interrupt::{Interrupt, Reason};
use paysweep::command::{self, World};
use paysweep::exit::{Exit, Failure};
use paysweep::time::Instant;
use tokio::signal::unix::{SignalKind, signal};

/// How long a command may take to end after the first signal: below the ten seconds after which Docker kills.
const PATIENCE: Duration = Duration::from_secs(8);

/// What the main thread has by custom.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(stop) => {
            let text = stop.text.as_bytes();
            // A reader that went away is no reason for another exit code.
            let _ = if stop.goes_to_stdout {
                std::io::stdout().write_all(text)
            } else {
                std::io::stderr().write_all(text)
            };
            return ExitCode::from(stop.exit.code());
        }
    };
    let form = log_format(&cli);
    logs(&cli, form);
    ends_with_70_on_panic();
    let exit = match execute(&cli) {
        Ok(exit) => exit,
        Err(error) => {
            let exit = error
                .downcast_ref::<Failure>()
                .map_or(Exit::Internal, |failure| failure.exit);
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            exit
        }
    };
    tells_its_exit(form, exit);
    ExitCode::from(exit.code())
}

/// Where the log is JSON, its last line says how the process ended, for collectors that see no exit code.
fn tells_its_exit(form: LogFormat, exit: Exit) {
    if form == LogFormat::Json && exit != Exit::Ok {
        let (code, name) = (exit.code(), exit.name());
        let _ = writeln!(
            std::io::stderr(),
            "{{\"type\":\"exit\",\"code\":{code},\"name\":\"{name}\",\"retryable\":{}}}",
            exit.retry_helps()
        );
    }
}

fn execute(cli: &Cli) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()?;
    let interrupt = Interrupt::default();
    listen(interrupt.clone())?;
    let env = |name: &str| std::env::var(name).ok();
    let clock = || Instant::from_utc(chrono::Utc::now());
    let (mut stdout, mut stderr) = (std::io::stdout().lock(), std::io::stderr());
    let mut world = World {
        env: &env,
        clock: &clock,
        interrupt,
        is_stdout_terminal: stdout.is_terminal(),
        columns: columns(stdout.is_terminal()),
        is_stderr_terminal: stderr.is_terminal(),
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    let done = runtime.block_on(command::execute(cli, &mut world));
    // What was left in the middle ends with the process.
    runtime.shutdown_background();
    Ok(done?)
}

/// How wide the terminal is; `COLUMNS` wins, as everywhere.
fn columns(is_terminal: bool) -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked.and_then(|text| text.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    is_terminal.then(|| asked.or_else(measured)).flatten()
}

/// Hears signals on a thread of its own, whatever the command is doing. The first one asks it to stop; with a second one,
/// or when it does not stop, the process ends at once, and the store is as after any crash.
fn listen(interrupt: Interrupt) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminates = signal(SignalKind::terminate())?;
    drop(entered);
    let hearing = async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupts.recv() => Reason::Interrupt,
                _ = terminates.recv() => Reason::Terminate,
            }
        };
        let first = next().await;
        interrupt.ask(first);
        let (last, why) = tokio::select! {
            again = next() => (again, "a second signal"),
            () = tokio::time::sleep(PATIENCE) => (first, "it did not stop in time"),
        };
        let told = last.failure().why(why).state(
            "as after any crash: what was not committed is gone, and a source stays held until its lease ends",
        );
        let _ = writeln!(std::io::stderr(), "error: {told}");
        std::process::exit(i32::from(last.exit().code()));
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(hearing))?;
    Ok(())
}

fn log_format(cli: &Cli) -> LogFormat {
    let is_in_kubernetes =
        std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty());
    let is_terminal = std::io::stderr().is_terminal();
    cli.common.log_format(is_in_kubernetes, is_terminal)
}

fn logs(cli: &Cli, form: LogFormat) {
    use tracing_subscriber::EnvFilter;
    let level = match cli.common.verbose {
        0 => "warn",
        1 => "paysweep=info,warn",
        _ => "paysweep=trace,info",
    };
    let wanted = std::env::var("PAYSWEEP_LOG").or_else(|_| std::env::var("RUST_LOG"));
    let filter = wanted
        .ok()
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match form {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(false).init(),
    }
}

/// A bug ends as `internal`, never as the runtime's own 101.
fn ends_with_70_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        told(info);
        std::process::exit(i32::from(Exit::Internal.code()));
    }));
}
