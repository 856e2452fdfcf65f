"""Archives: found, downloaded from a server that misbehaves, checked, and read without trusting them."""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.guard import no_hang
from textbench.tasks import InputError
from textbench.tasks.sources import archives, download
from textbench.tasks.sources.tar_stream import members

DOCUMENTS = {"x/1.txt": b"one" * 3000, "x/2.txt": b"two\xff", "x/10.txt": b""}


def tar_gz(contents: dict[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in contents.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
        for header in extra:
            tar.addfile(header)
    return gzip.compress(packed.getvalue(), 1, mtime=0)


NOISE = b"".join(hashlib.sha256(bytes([i, j])).digest() for i in range(64) for j in range(64))
PACKED = tar_gz({**DOCUMENTS, "noise": NOISE})  # noise makes it big enough to break off in the middle
SHA256 = hashlib.sha256(PACKED).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves `server.content` with the faults in `server.faults`, one a request, and notes the ranges asked for."""

    server: "Server"

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        fault = self.server.faults.pop(0) if self.server.faults else ""
        content, start = self.server.content, int(asked[6:-1]) if asked else 0
        if fault.isdigit():
            return self.send_error(int(fault))
        if fault == "no ranges":
            start = 0
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            shown = start + 1 if fault == "other range" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        promised = len(content) - start + {"short": -100, "long": 100, "huge": 10**9}.get(fault, 0)
        self.send_header("Content-Length", str(promised))
        self.end_headers()
        half = (len(content) - start) // 2
        if fault == "slow":
            self.server.patience.wait(5)
        elif fault == "drip":
            for byte in content[:40]:
                self.wfile.write(bytes([byte]))
                self.server.patience.wait(0.1)
        self.wfile.write(content[start : start + half] if fault == "break" else content[start:])
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.faults, self.ranges = PACKED, [], []
        self.patience = threading.Event()  # set at the end, so that no answer outlives its test

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hangs up is what some tests are about


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.patience.set()
        running.shutdown()


@pytest.fixture
def archive(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> archives.Archive:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(archives, "_cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("TEXTBENCH_DATA_DIR", raising=False)
    monkeypatch.delenv("TEXTBENCH_OFFLINE", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.01)
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    return archives.Archive(
        title="Toy",
        folder="toy",
        file="toy.tar.gz",
        urls=(f"http://127.0.0.1:{server.server_port}/toy.tar.gz",),
        sha256=(SHA256,),
        size=len(PACKED),
        wanted=r"(?:^|/)(\d+\.txt)$",
        content_sha256=archives.content_digest([(n.partition("/")[2], c) for n, c in DOCUMENTS.items()]),
        max_bytes=1_000_000,
        max_members=10,
        terms="for tests alone",
        citation="Nobody, 2001",
    )


def cached(tmp_path: Path) -> list[str]:
    return sorted(
        path.name for path in (tmp_path / "cache" / "toy").iterdir() if not path.name.endswith(".lock")
    )


def test_downloaded_once_with_its_terms(
    archive: archives.Archive, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archives.find(archive)
    assert path == tmp_path / "cache" / "toy" / "toy.tar.gz"
    assert path.read_bytes() == PACKED
    printed = capsys.readouterr()
    assert "Terms of use: for tests alone" in printed.err
    assert printed.out == ""
    assert archives.find(archive) == path
    assert (server.ranges, cached(tmp_path)) == ([None], ["toy.tar.gz"])
    expected = [("1.txt", b"one" * 3000), ("10.txt", b""), ("2.txt", b"two\xff")]
    assert archives.read(archive) == expected


def test_resumed_where_it_broke(archive: archives.Archive, server: Server) -> None:
    server.faults = ["break", "break"]
    assert archives.find(archive).read_bytes() == PACKED
    half = len(PACKED) // 2
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + (len(PACKED) - half) // 2}-"]


def test_resumed_by_a_later_run(archive: archives.Archive, server: Server, tmp_path: Path) -> None:
    server.faults = ["break", "503", "503", "503"]
    with pytest.raises(InputError, match=r"HTTP 503 .*4 attempts, [\d,]+ bytes are kept"):
        archives.find(archive)
    assert cached(tmp_path) == ["toy.tar.gz.part"]
    assert archives.find(archive).read_bytes() == PACKED
    assert server.ranges[-1] == f"bytes={len(PACKED) // 2}-"


@pytest.mark.parametrize("fault", ["no ranges", "other range"])
def test_a_server_without_proper_ranges_starts_again(
    archive: archives.Archive, server: Server, fault: str
) -> None:
    server.faults = ["break", fault]
    assert archives.find(archive).read_bytes() == PACKED


@pytest.mark.parametrize("left", [b"of another file", PACKED + b"more"])
def test_what_another_file_left_is_thrown_away(
    archive: archives.Archive, server: Server, tmp_path: Path, left: bytes
) -> None:
    part = tmp_path / "cache" / "toy" / "toy.tar.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert archives.find(archive).read_bytes() == PACKED
    assert server.ranges == [f"bytes={len(left)}-", None]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("short", "gave a wrong file"),
        ("huge", r"it has [\d,]+ bytes, at most [\d,]+ are accepted"),
        ("404", "HTTP 404 Not Found"),
    ],
)
def test_refused_at_once(
    archive: archives.Archive, server: Server, tmp_path: Path, fault: str, message: str
) -> None:
    server.faults = [fault]
    with pytest.raises(InputError, match=message) as caught:
        archives.find(archive)
    assert len(server.ranges) == 1
    assert cached(tmp_path) == []
    assert_helpful(str(caught.value), archive)


def assert_helpful(message: str, archive: archives.Archive) -> None:
    assert "\n" not in message
    for part in (archive.urls[0], SHA256, "toy/toy.tar.gz", "TEXTBENCH_DATA_DIR"):
        assert part in message


def test_a_length_that_is_never_reached(archive: archives.Archive, server: Server) -> None:
    """All bytes come at once; then the server says there are no more, and the digest decides."""
    server.faults = ["long"]
    assert archives.find(archive).read_bytes() == PACKED
    assert server.ranges == [None, f"bytes={len(PACKED)}-"]


def test_a_wrong_file_is_refused_and_removed(
    archive: archives.Archive, server: Server, tmp_path: Path
) -> None:
    server.content = b"<html>moved</html>"
    with pytest.raises(InputError, match=r"gave a wrong file .*expected") as caught:
        archives.find(archive)
    assert cached(tmp_path) == []
    assert_helpful(str(caught.value), archive)


def test_the_second_home_is_asked(archive: archives.Archive, server: Server) -> None:
    server.faults = ["404"]
    twice = replace(archive, urls=(archive.urls[0], archive.urls[0] + "?again"))
    assert archives.find(twice).read_bytes() == PACKED


@pytest.mark.parametrize(
    ("fault", "message"), [("slow", "no answer for 0.5 s"), ("drip", "slower than 1,000")]
)
def test_a_slow_server_is_given_up(
    archive: archives.Archive, server: Server, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    server.faults = [fault] * 2
    with pytest.raises(InputError, match=message) as caught:
        archives.find(archive)
    assert_helpful(str(caught.value), archive)


def test_nobody_answers(archive: archives.Archive) -> None:
    nowhere = replace(archive, urls=("http://127.0.0.1:9/toy.tar.gz",))
    with pytest.raises(InputError, match="Connection refused"):
        archives.find(nowhere)


def test_no_such_server(archive: archives.Archive) -> None:
    nowhere = replace(archive, urls=("http://textbench.invalid/toy.tar.gz",))
    with pytest.raises(
        InputError, match=r"textbench\.invalid/toy\.tar\.gz cannot be downloaded \("
    ) as caught:
        archives.find(nowhere)
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize("value", ["1", "true", "yes please"])
def test_offline(
    archive: archives.Archive, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.setenv("TEXTBENCH_OFFLINE", value)
    with pytest.raises(InputError, match="TEXTBENCH_OFFLINE is set") as caught:
        archives.find(archive)
    assert_helpful(str(caught.value), archive)
    assert server.ranges == []
    assert str(tmp_path / "cache" / "toy" / "toy.tar.gz") in str(caught.value)


def test_a_damaged_copy_in_the_cache_is_replaced(
    archive: archives.Archive, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archives.find(archive)
    path.write_bytes(PACKED[:-100])
    monkeypatch.setenv("TEXTBENCH_OFFLINE", "1")
    with pytest.raises(InputError, match="is not the original archive, and TEXTBENCH_OFFLINE"):
        archives.find(archive)
    monkeypatch.setenv("TEXTBENCH_OFFLINE", "0")
    assert archives.find(archive).read_bytes() == PACKED


def test_the_data_folder_comes_first(
    archive: archives.Archive, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "data" / "toy" / "toy.tar.gz"
    own.parent.mkdir(parents=True)
    own.write_bytes(PACKED)
    monkeypatch.setenv("TEXTBENCH_DATA_DIR", str(tmp_path / "data"))
    assert archives.find(archive) == own
    own.write_bytes(PACKED[:-100])
    with pytest.raises(
        InputError, match=r"toy\.tar\.gz has sha256 \w{64}, expected .*put the original there"
    ):
        archives.find(archive)
    assert own.exists()
    own.write_bytes(tar_gz({**DOCUMENTS, "x/2.txt": b"other"}))
    with pytest.raises(InputError, match="its documents are not the original ones"):
        archives.find(archive)
    assert server.ranges == []
    own.unlink()  # a data folder without this archive: the cache, then the public home
    assert archives.find(archive).is_relative_to(tmp_path / "cache")
    monkeypatch.setenv("TEXTBENCH_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="TEXTBENCH_DATA_DIR must be a folder of data files, got"):
        archives.find(archive)


def test_the_same_documents_packed_otherwise_are_accepted(archive: archives.Archive, server: Server) -> None:
    contents = {f"./top/{name}": content for name, content in reversed(DOCUMENTS.items())}
    server.content = tar_gz({**contents, "README": b"?"})
    expected = [("1.txt", b"one" * 3000), ("10.txt", b""), ("2.txt", b"two\xff")]
    assert archives.read(archive) == expected


def test_a_cache_that_cannot_be_written_to(
    archive: archives.Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(archives, "_cache_folder", lambda: tmp_path / "file")
    with pytest.raises(InputError, match=r"cache folder .* cannot be written to \(.*\); set XDG_CACHE_HOME"):
        archives.find(archive)


FIND = """
import sys
from pathlib import Path
from textbench.tasks.sources import archives
archives._cache_folder = lambda: Path(sys.argv[1])
print(archives.find(eval(sys.argv[2], {"Archive": archives.Archive})))
"""


def test_two_processes_download_once(archive: archives.Archive, server: Server, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIND, str(tmp_path / "cache"), repr(archive)]
    root = Path(archives.__file__).parents[1]
    both = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    printed = [process.communicate(timeout=60)[0] for process in both]
    assert printed[0] == printed[1] == f"{tmp_path / 'cache' / 'toy' / 'toy.tar.gz'}\n".encode()
    assert server.ranges == [None]


def test_importing_is_light() -> None:
    script = "import sys, textbench.tasks.sources.archives\n"
    script += "print({'rich', 'sklearn', 'scipy', 'numpy', 'pandas'} & set(sys.modules))"
    root = Path(archives.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def read(path: Path, content: bytes, max_bytes: int = 1_000_000, max_members: int = 10) -> list:
    path.write_bytes(content)
    return list(members(path, r"(.+\.txt)$", max_bytes=max_bytes, max_members=max_members))


def header(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (header("/etc/passwd"), "stay inside the archive, got '/etc/passwd'"),
        (header("x/../../y"), r"stay inside the archive, got 'x/\.\./\.\./y'"),
        (header("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "'link' is neither"),
        (header("link", type=tarfile.LNKTYPE, linkname="x/1.txt"), "'link' is neither"),
        (header("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), "'null' is neither"),
        (header("pipe", type=tarfile.FIFOTYPE), "'pipe' is neither"),
        (header("x/1.txt"), "every file must occur once, got 'x/1.txt' twice"),
    ],
)
def test_members_refuses(tmp_path: Path, extra: tarfile.TarInfo, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.tar.gz", tar_gz(DOCUMENTS, extra))
    assert [path.name for path in tmp_path.iterdir()] == ["t.tar.gz"]


@pytest.mark.parametrize(
    ("contents", "limits", "message"),
    [
        ({"a": bytes(3_000_000)}, {"max_bytes": 10**9}, "unpacks to more than the 1,3"),  # a ratio of 1,000
        ({"a": bytes(50_000)}, {"max_bytes": 40_000}, "unpacks to more than the 40,000 bytes accepted"),
        ({str(i): b"" for i in range(11)}, {}, "10 members at most is accepted"),
    ],
)
def test_members_refuses_bombs(tmp_path: Path, contents: dict, limits: dict, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("1,3", r"[\d,]+")):
        read(tmp_path / "t.tar.gz", tar_gz(contents), **limits)


def flipped(content: bytes) -> bytes:
    return content[:-6] + bytes([content[-6] ^ 1]) + content[-5:]  # in gzip's checksum


@pytest.mark.parametrize(
    "alter", [lambda c: c[:-1], lambda c: c[: len(c) // 2], flipped, lambda c: b"", lambda c: b"no archive"]
)
def test_members_refuses_what_is_altered(tmp_path: Path, alter: Callable[[bytes], bytes]) -> None:
    with pytest.raises(InputError, match=r"t\.tar\.gz is not a whole \.tar\.gz archive: ."):
        read(tmp_path / "t.tar.gz", alter(PACKED))


def test_a_size_below_nothing_does_not_hang(tmp_path: Path) -> None:
    """A header that says -512 bytes sends a reader that seeks back to the same header for ever."""
    content = bytearray(gzip.decompress(tar_gz({"a": b"x", "b.txt": b"y"})))
    content[124:136] = b"\xff" * 10 + b"\xfe\x00"
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    with no_hang(), pytest.raises(InputError):
        read(tmp_path / "t.tar.gz", gzip.compress(bytes(content)))


def test_the_order_of_members_does_not_matter(tmp_path: Path) -> None:
    backwards = dict(reversed(DOCUMENTS.items()))
    assert read(tmp_path / "t.tar.gz", tar_gz(DOCUMENTS)) == read(tmp_path / "t.tar.gz", tar_gz(backwards))
