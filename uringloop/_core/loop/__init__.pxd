# The event loop: its turn, handles, timers and inbox, the epoll set of add_reader, and the recorder for observers.
