"""How many documents a second a served TF-IDF model labels on one core: in one request, and in many at once."""

import asyncio
import json
import time

from tests.made_model import CLASSES, made_model
from tests.test_flows_servers_model_server_fuzz import asked
from textbench.flows.servers.model_server import ModelServer

N = 8_000
WORDS = 70  # of a text, as many as a Reuters story has in the mean


def main() -> None:
    """Time requests of 1, 32 and 1,000 texts by CPU seconds, then 64 clients at once with a text each."""
    vocabulary = " ".join(CLASSES.values()).split() + [f"word{i}" for i in range(3_000)]
    texts = [" ".join(vocabulary[(i * 7 + j * 13) % len(vocabulary)] for j in range(WORDS)) for i in range(N)]
    server = ModelServer(made_model(n_terms=16_000), {})
    asyncio.run(asked(server, json.dumps(texts[:10]).encode()))
    for size, n_clients in ((1, 1), (32, 1), (1000, 1), (1, 64)):
        count = min(N, 300 * size) if n_clients == 1 else 2_000
        bodies = [json.dumps(texts[i : i + size]).encode() for i in range(0, count, size)]
        begun = time.process_time()
        asyncio.run(_ask(server, bodies, n_clients))
        rate = count / (time.process_time() - begun)
        print(f"{n_clients:3} at once, {size:5} texts a request   {rate:8,.0f} documents a CPU second")


async def _ask(server: ModelServer, bodies: list[bytes], n_clients: int) -> None:
    waiting = iter(bodies)

    async def client() -> None:
        for body in waiting:
            status, _ = await asked(server, body)
            assert status == 200

    await asyncio.gather(*(client() for _ in range(n_clients)))
