//! A Unix socket that listens at a path.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use super::BACKLOG;

/// A listening Unix socket. A file that this process made is removed before the socket is closed: from then on another
/// process may make one of the same name.
#[derive(Debug)]
pub struct UnixSocket {
    _file: Option<SocketFile>,
    listener: UnixListener,
}

/// The file of a Unix socket, removed when it is dropped.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl UnixSocket {
    /// Makes the socket with mode 0600, so that only the process's own user can connect. The socket of a process that has
    /// ended is replaced.
    ///
    /// # Errors
    /// The path is that of another file or of a socket that is served, or cannot be written.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        // Held to the end, so that of two processes that find a stale socket only one replaces it.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = File::open(directory)?;
        directory
            .try_lock()
            .map_err(|_| io::Error::other("another process is making a socket in the same directory"))?;
        let bound = async {
            remove_stale(path).await?;
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.bind(&SockAddr::unix(path)?)?;
            let file = SocketFile(path.to_owned());
            // Before it listens no client can connect, regardless of the mode that the umask left it.
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok(Self { _file: Some(file), listener: UnixListener::from_std(socket.into())? })
        };
        let bound = bound.await;
        directory.unlock()?;
        bound
    }

    /// Returns the socket that the service manager passed; its file belongs to the manager.
    ///
    /// # Errors
    /// The socket cannot be registered with the runtime.
    pub fn passed(socket: net::UnixListener) -> io::Result<Self> {
        Ok(Self { _file: None, listener: UnixListener::from_std(socket)? })
    }

    /// Accepts a connection.
    ///
    /// # Errors
    /// The system refuses, for lack of file descriptors for instance.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(socket, _)| socket)
    }
}

/// Removes the socket of a process that has ended.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => return Err(io::Error::other("the file is no socket")),
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // A full backlog refuses in other words.
        Ok(_) | Err(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves this socket")),
    }
}
