"""A cache in Redis before something slow, a pipeline to count its use (needs redis). redis_cache.py [PORT]"""

import asyncio
import sys

import redis.asyncio as redis

import uringloop

calls = 0


async def slow_square(number: int) -> int:
    global calls
    calls += 1
    await asyncio.sleep(0.01)
    return number * number


async def square(cache: "redis.Redis", number: int) -> int:
    found = await cache.get(f"square:{number}")
    if found is None:
        found = await slow_square(number)
        async with cache.pipeline() as pipeline:
            pipeline.set(f"square:{number}", found, ex=60)
            pipeline.incr("misses")
            await pipeline.execute()
    return int(found)


async def main(port: int) -> None:
    async with redis.Redis(port=port) as cache:
        await cache.delete("misses", *(f"square:{number}" for number in range(10)))
        first = await asyncio.gather(*(square(cache, number) for number in range(10)))
        again = await asyncio.gather(*(square(cache, number) for number in range(10)))
        print(first == again, "computed", calls, "misses", int(await cache.get("misses") or 0))


if __name__ == "__main__":
    uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 6379))
