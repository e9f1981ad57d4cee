// SPDX-License-Identifier: Apache-2.0
// Adds one to the number in a file, under a lock of the host's agent: counter SOCKET FILE TIMES
use std::io::{BufRead, BufReader, Result, Write};
use std::os::unix::net::UnixStream;
use std::{env, fs};

// ":5" is a number, "+OK" well done, "-BUSY ..." an error.
fn ask(agent: &mut BufReader<UnixStream>, command: &str) -> Result<String> {
    write!(agent.get_mut(), "{command}\r\n")?;
    let mut reply = String::new();
    agent.read_line(&mut reply)?;
    let text = reply.get(1..).unwrap_or("").trim_end().to_string();
    if reply.starts_with([':', '+']) { Ok(text) } else { Err(std::io::Error::new(std::io::ErrorKind::Other, text)) }
}

fn main() -> Result<()> {
    let words: Vec<String> = env::args().collect();
    let mut agent = BufReader::new(UnixStream::connect(&words[1])?);
    for _ in 0..words[3].parse().unwrap_or(0) {
        let fence = ask(&mut agent, "LOCK counter 60000")?;
        let text = fs::read_to_string(&words[2]).unwrap_or_default();
        let number: u64 = text.trim().parse().unwrap_or(0);
        if ask(&mut agent, "HELD counter")? == "0" {
            return Err(std::io::Error::new(std::io::ErrorKind::Other, "the lock was lost"));
        }
        fs::write(&words[2], (number + 1).to_string())?;
        ask(&mut agent, &format!("UNLOCK counter {fence}"))?;
    }
    Ok(())
}
