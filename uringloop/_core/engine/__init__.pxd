# Operations, and the engines that run them: io_uring, epoll, and a simulated kernel for the tests.
