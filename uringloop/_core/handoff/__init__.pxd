# Waiting across loops: the parts that all locks, queues and events share.
