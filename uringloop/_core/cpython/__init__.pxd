# All that relies on CPython beyond its documented API.
