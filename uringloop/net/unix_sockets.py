"""Unix stream connections and servers. CPython's own code makes them, so each version's arguments keep their meaning;
from the loop it needs only `sock_connect`, transports and serving. This file removes a closed server's socket."""

from __future__ import annotations

import os
import socket
from asyncio import unix_events
from asyncio.log import logger

create_unix_connection = unix_events._UnixSelectorEventLoop.create_unix_connection
create_unix_server = unix_events._UnixSelectorEventLoop.create_unix_server


def remove_socket_of(sock: socket.socket, inodes: dict[socket.socket, int]) -> None:
    """Unlink the path of a server that closes, if the path is still this server's. create_unix_server fills `inodes`
    from Python 3.13 on (`cleanup_socket`)."""
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
