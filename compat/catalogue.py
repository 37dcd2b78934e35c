"""Every suite there is, by name, with its pinned versions."""

from __future__ import annotations

from compat.behaviours import AREAS
from compat.suite import CheckSuite, Suite
from compat.suites.aiofiles import AiofilesSuite
from compat.suites.cpython import CPythonSuite
from compat.suites.pytest import PytestSuite
from compat.suites.unittest import UnittestSuite
from compat.suites.uvloop import UvloopSuite

PYTEST = ("pytest==9.1.1", "pytest-mock==3.15.1", "pytest-timeout==2.4.0")
TRUSTME = ("trustme==1.2.1", "cryptography==46.0.3")

# what can't be run by this harness, for the page
UNRUNNABLE = {
    "aiokafka": "needs a Kafka broker, which neither PyPI nor Debian has",
    "redis-py's cluster, sentinel and module tests": "need several servers, or modules of the server",
    "Tornado's curl and Twisted tests": "need libcurl and Twisted, which bring their own way to wait",
    "uvloop's tests of its inside": "libuv handles, file system events, helpers: no other loop has them",
}


def _at_work(area: str, title: str, *requirements: str, services: tuple[str, ...] = ()) -> CheckSuite:
    """A workload of a real application, in apps/."""
    return CheckSuite(
        title=title,
        package="compat.apps",
        areas=(area,),
        requirements=requirements,
        services=services,
        test_seconds=60.0,
    )


SUITES: dict[str, Suite] = {
    "cpython": CPythonSuite(title="CPython's test.test_asyncio"),
    "uvloop": UvloopSuite(
        title="uvloop's test suite",
        version="0.23.0",
        requirements=("aiohttp==3.14.5", "psutil==7.2.2", "pyOpenSSL==26.4.0"),
    ),
    "behaviours": CheckSuite(
        title="asyncio's behaviour, check by check", package="compat.behaviours", areas=AREAS
    ),
    "anyio": PytestSuite(
        title="AnyIO's test suite, asyncio backend",
        name="anyio",
        version="4.16.0",
        requirements=(
            "anyio==4.16.0",
            *PYTEST,
            *TRUSTME,
            "psutil==7.2.2",
            "hypothesis==6.150.0",
            "blockbuster==1.5.29",
        ),
        select="not trio and not uvloop",
    ),
    "aiohttp": PytestSuite(
        title="aiohttp's test suite",
        name="aiohttp",
        version="3.14.5",
        requirements=(
            "aiohttp[speedups]==3.14.5",
            *PYTEST,
            *TRUSTME,
            "pytest-xdist==3.8.0",
            "pytest-codspeed==4.2.0",
            "blockbuster==1.5.29",
            "freezegun==1.5.5",
            "re-assert==1.1.0",
            "proxy.py==2.4.10",
            "coverage==7.13.0",
            "setuptools-git==1.2",
            "zlib_ng==1.0.0",
        ),
        select="not uvloop",
        leave_out=("tests/autobahn/*", "tests/test_benchmarks_*", "tests/isolated/*"),
        hide="aiohttp",
    ),
    "uvicorn": PytestSuite(
        title="uvicorn's test suite",
        name="uvicorn",
        version="0.54.0",
        requirements=(
            # not uvicorn[standard]: that brings uvloop, which it then takes by itself
            "uvicorn==0.54.0",
            "httptools==0.9.0",
            "websockets==17.4",
            "watchfiles==1.3.0",
            "python-dotenv==1.2.4",
            "pyyaml==6.0.3",
            *PYTEST,
            *TRUSTME,
            "pytest-xdist==3.8.0",
            "httpx2==2.16.0",
            "h2==4.4.1",
            "a2wsgi==1.10.10",
            "wsproto==1.3.2",
            "coverage==7.13.0",
        ),
        select="not trio and not uvloop",
        leave_out=("tests/benchmarks/*",),
    ),
    "pytest-asyncio": PytestSuite(
        title="pytest-asyncio's test suite",
        name="pytest-asyncio",
        version="1.5.0",
        requirements=("pytest-asyncio==1.5.0", "pytest==9.1.1", "hypothesis==6.150.0", "coverage==7.13.0"),
    ),
    "aiofiles": AiofilesSuite(
        title="aiofiles' test suite, on uringloop.aiofiles_compat",
        name="aiofiles",
        version="25.1.0",
        requirements=("aiofiles==25.1.0", *PYTEST, "pytest-asyncio==1.5.0"),
        options=("--asyncio-mode=auto",),
    ),
    "tornado": UnittestSuite(
        title="Tornado's test suite",
        name="tornado",
        version="6.6.1",
        requirements=("tornado==6.6.1", "pycares==4.11.0"),
        id_prefix="tornado.test.",
        files="tornado/test/*_test.py",
        leave_out=("curl_httpclient_test", "twisted_test"),
        silent=("tornado.access",),
    ),
    "hypercorn": PytestSuite(
        title="Hypercorn's test suite",
        name="hypercorn",
        version="0.18.0",
        requirements=(
            "hypercorn==0.18.0",
            "pytest==9.1.1",
            "pytest-asyncio==1.5.0",
            "httpx==0.28.1",
            "trio==0.34.0",
        ),
        leave_out=("tests/trio/*",),
        select="not trio and not uvloop",
    ),
    "asyncpg": PytestSuite(
        title="asyncpg's test suite, on a PostgreSQL server",
        name="asyncpg",
        version="0.32.0",
        requirements=("asyncpg==0.32.0", *PYTEST, "distro==1.9.0"),
        services=("postgresql",),
        serial=True,
        leave_out=("tests/test__*",),
        hide="asyncpg",
    ),
    "redis": PytestSuite(
        title="redis-py's asyncio test suite, on a Redis server",
        name="redis",
        version="8.1.0",
        requirements=("redis[hiredis]==8.1.0", *PYTEST, "pytest-asyncio==1.5.0", "pybreaker==1.4.1"),
        services=("redis",),
        serial=True,
        files="tests/test_asyncio/test_*.py",
        options=("--redis-url={REDIS_URL}",),
        leave_out=(
            "*/test_cluster*",
            # a proxy between several servers, sentinels, accounts elsewhere, modules of the server
            "*/test_cwe_404.py",
            "*/test_sentinel*",
            "*/test_credentials.py",
            "*/test_vsets.py",
            "*/test_search.py",
            "*/test_json.py",
            "*/test_bloom.py",
            "*/test_timeseries.py",
        ),
    ),
    "aiohttp-at-work": _at_work("aiohttp", "aiohttp: server and client at work", "aiohttp[speedups]==3.14.5"),
    "fastapi": _at_work(
        "fastapi",
        "FastAPI, Starlette, uvicorn and HTTPX at work",
        "fastapi==0.163.0",
        "starlette==1.10.0",
        "uvicorn==0.54.0",
        "httptools==0.9.0",
        "httpx==0.28.1",
        "websockets==17.4",
        "python-multipart==0.0.33",
    ),
    "websockets": _at_work("websockets", "websockets at work", "websockets==17.4"),
    "psycopg": _at_work(
        "psycopg",
        "psycopg on a PostgreSQL server",
        "psycopg[binary]==3.3.9",
        "psycopg-pool==3.3.3",
        services=("postgresql",),
    ),
    "grpc": _at_work("grpc", "grpc.aio at work", "grpcio==1.85.1"),
    "ipykernel": _at_work(
        "ipykernel", "Jupyter's ipykernel executing cells", "ipykernel==7.4.0", "jupyter-client==8.10.0"
    ),
    "distributed": _at_work(
        "distributed", "Dask distributed with two worker processes", "distributed==2026.8.0", "dask==2026.8.0"
    ),
}
