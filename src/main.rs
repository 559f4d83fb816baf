//! The only reader of arguments, environment, clock and signals: parse, run, exit code.
#![allow(
    clippy::disallowed_methods,
    reason = "clock and environment are read here and handed on"
)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use paysweep::cli::{self, Cli, LogFormat};
use paysweep::command::{self, World};
use paysweep::exit::{Exit, Failure};
use paysweep::time::Instant;

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
    logs(&cli);
    ends_with_70_on_panic();
    match execute(&cli) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            let exit = error
                .downcast_ref::<Failure>()
                .map_or(Exit::Internal, |failure| failure.exit);
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(exit.code())
        }
    }
}

fn execute(cli: &Cli) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let env = |name: &str| std::env::var(name).ok();
    let clock = || Instant::from_utc(chrono::Utc::now());
    let (mut stdout, mut stderr) = (std::io::stdout().lock(), std::io::stderr());
    let mut world = World {
        env: &env,
        clock: &clock,
        is_stdout_terminal: stdout.is_terminal(),
        is_stderr_terminal: stderr.is_terminal(),
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    runtime.block_on(async {
        let mut interrupt =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        // Dropping the command rolls its open transaction back.
        tokio::select! {
            done = command::execute(cli, &mut world) => Ok(done?),
            _ = interrupt.recv() => Err(interrupted(Exit::Interrupted, "SIGINT").into()),
            _ = terminate.recv() => Err(interrupted(Exit::Terminated, "SIGTERM").into()),
        }
    })
}

fn interrupted(exit: Exit, signal: &str) -> Failure {
    Failure::new(exit, format!("{signal}: stopped"))
        .remedy("run again: it starts from the same watermark")
        .state("the open transaction was rolled back; what was committed before stands")
}

fn logs(cli: &Cli) {
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
    match cli.common.log_format {
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
