//! The stub of a provider as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::SECRET;
use crate::support::Gateway;

pub struct Stub(Child);

impl Stub {
    /// Starts it on a port, for a gateway that has made its certificates.
    pub fn start(gateway: &Gateway, port: u16) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_paybridge"))
            .args(["stub", "provider", "--listen", &format!("127.0.0.1:{port}"), "--delay", "50", "--ca"])
            .arg(gateway.root.path().join("certs/ca.pem"))
            .env("PROVIDER_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stub starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("listening on http://127.0.0.1:{port}/operations\n"));
        Self(child)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
