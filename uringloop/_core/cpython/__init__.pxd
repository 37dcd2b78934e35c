# All code that relies on CPython beyond its documented API.
