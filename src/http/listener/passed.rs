//! Sockets that the service manager passes (`sd_listen_fds(3)`). The manager keeps them open, so that connections wait while
//! a gateway restarts, and none is refused.

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use socket2::SockRef;

/// The listening sockets that the service manager passed, by the listener that they are for.
#[derive(Debug, Default)]
pub struct PassedSockets {
    /// Those named `public`.
    pub public: Vec<TcpListener>,
    /// Those named `admin`.
    pub admin: Vec<PassedAdminSocket>,
}

/// A socket for the admin listener.
#[derive(Debug)]
pub enum PassedAdminSocket {
    /// Of a TCP address.
    Tcp(TcpListener),
    /// Of a path, which belongs to the service manager.
    Unix(UnixListener),
}

impl PassedSockets {
    /// Takes the sockets that were passed to this process, and removes the variables that announce them. Call it once,
    /// before another thread reads the environment.
    ///
    /// # Errors
    /// A socket has another name, is of another kind, or does not listen. The message is one line.
    pub fn of_this_process() -> Result<Self, String> {
        // A process that the manager did not start itself inherits the variables, but not the sockets.
        let is_addressed = env::var("LISTEN_PID").is_ok_and(|pid| pid.parse() == Ok(std::process::id()));
        if !is_addressed {
            return Ok(Self::default());
        }
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        Self::take(&mut ListenFd::from_env(), &names)
    }

    fn take(passed: &mut ListenFd, names: &str) -> Result<Self, String> {
        let mut sockets = Self::default();
        let mut names = names.split(':');
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            let wrong = |error| format!("the socket `{name}` of the service manager cannot be used: {error}");
            match name {
                "public" => sockets.public.push(tcp(passed, index).map_err(wrong)?),
                "admin" => sockets.admin.push(admin(passed, index).map_err(wrong)?),
                _ => {
                    return Err(format!(
                        "the service manager passed a socket named `{}`: `FileDescriptorName=` must be `public` or `admin`",
                        name.escape_debug()
                    ));
                }
            }
        }
        Ok(sockets)
    }
}

fn tcp(passed: &mut ListenFd, index: usize) -> io::Result<TcpListener> {
    let socket = passed.take_tcp_listener(index)?.ok_or(io::ErrorKind::NotFound)?;
    check_listening(&SockRef::from(&socket))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn admin(passed: &mut ListenFd, index: usize) -> io::Result<PassedAdminSocket> {
    let Ok(Some(socket)) = passed.take_unix_listener(index) else {
        return tcp(passed, index).map(PassedAdminSocket::Tcp);
    };
    check_listening(&SockRef::from(&socket))?;
    socket.set_nonblocking(true)?;
    Ok(PassedAdminSocket::Unix(socket))
}

fn check_listening(socket: &SockRef<'_>) -> io::Result<()> {
    if socket.is_listener()? { Ok(()) } else { Err(io::Error::other("it does not listen (Accept= must be no)")) }
}
