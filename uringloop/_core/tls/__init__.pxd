# TLS over any transport.
