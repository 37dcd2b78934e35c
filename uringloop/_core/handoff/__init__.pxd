# Waiting across loops: the parts that all locks, queues and events share, with the awaitables that their methods return.
