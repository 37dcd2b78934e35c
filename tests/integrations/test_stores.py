from urllib.parse import urlsplit

import pytest

from compat.services import postgresql, redis
from tests.examples.programs import output_of


def test_a_pool_of_connections_on_each_loop() -> None:
    pytest.importorskip("asyncpg", reason="one of `make integrations`")
    if reason := postgresql.missing():
        pytest.skip(reason)
    with postgresql.running() as where:
        dsn = f"postgresql://{where['PGUSER']}@/{where['PGDATABASE']}?host={where['PGHOST']}&port={where['PGPORT']}"
        assert output_of("postgres_pool.py", dsn) == "sum 9900\n"


def test_a_cache_in_redis() -> None:
    pytest.importorskip("redis", reason="one of `make integrations`")
    if reason := redis.missing():
        pytest.skip(reason)
    with redis.running() as where:
        port = urlsplit(where["REDIS_URL"]).port
        assert output_of("redis_cache.py", port) == "True computed 10 misses 10\n"
