# Operations, the queue of what is ready to run, and the engines: io_uring, epoll, and a simulated kernel for the tests.
