"""A server on every core: one port, a loop and a listener per context, one lock and one queue for all of them; SIGTERM
lets the connections finish."""

import asyncio
import signal
import sys

import uringloop

lock = uringloop.Lock()  # shared by all loops
visits: dict[str, int] = {}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    name = (await reader.readline()).decode().strip()
    async with lock:
        visits[name] = visits.get(name, 0) + 1
        answer = f"hello {name}, visit {visits[name]}\n"
    writer.write(answer.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def main(port: int) -> None:
    # Blocked before the contexts start: their threads inherit it, and the signal is taken below.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    with uringloop.Scheduler(workers=2, name="serve") as scheduler:
        served = scheduler.serve(serve, "127.0.0.1", port)
        print(f"listening on {served.port}", flush=True)
        signal.sigwait([signal.SIGTERM, signal.SIGINT])
        report = scheduler.stop(timeout=10)
        print(f"stopped, {report.cancelled} cancelled, {sum(visits.values())} visits")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
