"""Unix stream connections and servers. CPython's own code makes them, with each version's meaning of its arguments;
it asks the loop for no more than `sock_connect`, transports and serving. Left to us: removing a server's socket."""

from __future__ import annotations

import os
import socket
from asyncio import unix_events
from asyncio.log import logger

create_unix_connection = unix_events._UnixSelectorEventLoop.create_unix_connection
create_unix_server = unix_events._UnixSelectorEventLoop.create_unix_server


def remove_socket_of(sock: socket.socket, inodes: dict[socket.socket, int]) -> None:
    """Unlink the path a closing server listens on, if it is still this server's. `inodes` are filled by
    create_unix_server from Python 3.13 on (`cleanup_socket`)."""
    inode = inodes.pop(sock, None)
    if inode is None:
        return
    path = sock.getsockname()
    try:
        if os.stat(path).st_ino == inode:
            os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.error("Unable to clean up listening UNIX socket %r: %r", path, error)
