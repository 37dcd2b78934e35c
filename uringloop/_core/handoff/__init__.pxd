# Waiting across loops: what locks, queues and events are made of.
