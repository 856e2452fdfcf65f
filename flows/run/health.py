"""Does a server answer?"""

import urllib.request


def answers(address: str, seconds: float = 2.0) -> bool:
    """Say whether a GET of this address is answered with status 200 in time; a proxy has no say on loopback."""
    is_here = "//127.0.0.1:" in address or "//localhost:" in address
    handlers = [urllib.request.ProxyHandler({})] if is_here else []
    try:
        with urllib.request.build_opener(*handlers).open(address, timeout=seconds) as reply:
            return bool(reply.status == 200)
    except (OSError, ValueError):
        return False
