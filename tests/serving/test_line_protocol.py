"""The line protocol: answers and models are those of a file, in whatever pieces and by whatever clients lines come."""

import contextlib
import random
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from command import learn
from servers import Served, connected, received, served, wait_for

import xclass
from xclass.errors import UsageError
from xclass.reductions.core import probabilities
from xclass.serving.lines import ERROR, LineHandler

CLASSES = 12
LEARNERS = {
    "oaa": ("--oaa", f"{CLASSES}"),
    "recall_tree": ("--recall_tree", f"{CLASSES}"),
    "multiclass": ("--multiclass",),
    "cpt": ("--cpt", f"{CLASSES}"),
    "scalar": (),
    "names": ("--multiclass", "--learn_names"),
    "lists": ("--multilabel",),
    "lists of oaa": ("--multilabel_oaa", f"{CLASSES + 1}"),
}


@pytest.fixture(autouse=True, params=["uvloop", pytest.param("asyncio", marks=pytest.mark.slow)])
def event_loop(request, monkeypatch):
    """The event loop of the server: uvloop's if that is installed, and in slow tests that of Python."""
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)


def lines(count: int, seed: int, kind: str = "oaa", labelled: float = 0.8) -> list[str]:
    """Return lines of VW text whose labels depend on a feature; some have no label, a weight, or a tag."""
    chance = random.Random(seed)
    made = []
    for i in range(count):
        label = chance.randrange(CLASSES) + 1
        text = f"c{label}" if kind == "names" else f"{label},{label % CLASSES + 1}" if "lists" in kind else f"{label}"
        weight = chance.choice(["", "", " 2", " 0.5"])
        tag = chance.choice(["", "", f" 'tag{i}"])
        head = f"{text}{weight}{tag}" if chance.random() < labelled else tag.strip()
        noise = " ".join(f"n{chance.randrange(50)}:{chance.random():.3f}" for _ in range(4))
        made.append(f"{head} |f y{label} {noise}")
    return made


def text_of(given: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in given).encode()


def model(folder, kind: str) -> str:
    path = folder / "start"
    if not path.exists():
        (folder / "first.vw").write_bytes(text_of(lines(200, 1, kind)))
        learn("-d", "first.vw", "-b", 12, *LEARNERS[kind], "-f", "start", "--quiet", cwd=folder)
    return str(path)


@pytest.mark.parametrize("kind", LEARNERS)
def test_answers_and_the_model_are_those_of_a_file(kind, tmp_path):
    text = text_of(lines(400, 2, kind))
    (tmp_path / "more.vw").write_bytes(text)
    model(tmp_path, kind)
    learn("-i", "start", "-d", "more.vw", "-f", "file", "-p", "answers", "--quiet", cwd=tmp_path)
    for piece in (len(text), 1000, 37):  # bytes that are sent at a time
        with served(xclass.load(tmp_path / "start"), path=str(tmp_path / "served")) as running:
            running.service.lines_at_once = 1 + piece % 10
            answers = running.ask(text, piece)
        assert answers == (tmp_path / "answers").read_bytes()
        assert (tmp_path / "served").read_bytes() == (tmp_path / "file").read_bytes()


def test_without_uvloop_answers_are_the_same(tmp_path, monkeypatch):
    path, text, answers = model(tmp_path, "oaa"), text_of(lines(100, 2)), []
    for _ in range(2):
        with served(xclass.load(path)) as running:
            answers.append(running.ask(text, 37))
        monkeypatch.setitem(sys.modules, "uvloop", None)
    assert answers[0] == answers[1] and answers[0].count(b"\n") == 100


@pytest.mark.parametrize("kind", ["oaa", "multiclass", "names", "lists"])
def test_with_t_nothing_is_learned(kind, tmp_path):
    text = text_of(lines(100, 2, kind))
    (tmp_path / "more.vw").write_bytes(text)
    path = model(tmp_path, kind)
    learn("-t", "-i", "start", "-d", "more.vw", "-p", "answers", "--quiet", cwd=tmp_path)
    with served(xclass.load(path), learns=False) as running:
        assert running.ask(text) == (tmp_path / "answers").read_bytes()
        assert running.service.learned == 0


@pytest.mark.parametrize("listing", [{"top_k": 3}, {"probabilities": True}])
def test_answers_with_probabilities_are_those_of_a_file(listing, tmp_path):
    text = text_of(lines(100, 2))
    (tmp_path / "more.vw").write_bytes(text)
    path = model(tmp_path, "oaa")
    options = [word for name, value in listing.items() for word in (f"--{name}", value) if word is not True]
    learn("-i", "start", "-d", "more.vw", "-p", "answers", *options, "-f", "file", "--quiet", cwd=tmp_path)
    saved = tmp_path / "served"
    with served(xclass.load(path), listing=probabilities.ListingOptions(**listing), path=str(saved)) as running:
        assert running.ask(text) == (tmp_path / "answers").read_bytes()
    assert saved.read_bytes() == (tmp_path / "file").read_bytes()


@pytest.mark.filterwarnings("ignore::xclass.XclassWarning")
@pytest.mark.parametrize("kind", ["names", "lists", "oaa"])
def test_a_new_learner_finds_out_what_labels_are(kind, tmp_path):
    options = {"oaa": ("oaa", CLASSES), "names": (None, None), "lists": (None, None)}[kind]
    given = ["|f y1 n1", "x x x |f y1", *lines(60, 3, kind)]
    expected = xclass.Learner(*options, bits=12)
    answers = []
    for line in given[:1] + given[2:]:
        expected.learn(line)
    with xclass.Learner(*options, bits=12) as learner, served(learner, path=str(tmp_path / "m")) as running:
        answers = running.ask(text_of(given)).splitlines()
        assert answers[1].startswith(b"error: ") and len(answers) == len(given)
        assert running.service.learner.classes == expected.classes
    expected.end_pass()
    expected.save(tmp_path / "expected")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "expected").read_bytes()


BAD = {
    b"": b"error: the line is empty; a line is `label | features`, or `| features`",
    b"x y z | a": b"error: column 1: the words from 'x' to the first bar | are more than a label and a weight;",
    b"99 | a": b"error: column 1: label 99 is outside 1..12 (--oaa 12)",
    b"1 | a:": b"error: column 6: feature 'a' has no value;",
    b"1 |a:x b": b"error: column 6: the weight 'x' of a namespace is not a finite number;",
    b"1 \xff\x00 | a \x1b[31m": b"error: column",
    b"1 | a\rb": b"error: column 6: there is a carriage return inside the line;",
}


def test_a_bad_line_is_answered_by_an_error_and_others_by_their_predictions(tmp_path):
    good = [line.encode() for line in lines(40, 4)]
    mixed = list(good)
    bad = list(BAD) * 2
    chance = random.Random(1)
    for line in bad:
        mixed.insert(chance.randrange(len(mixed) + 1), line)
    path = model(tmp_path, "oaa")
    with served(xclass.load(path), path=str(tmp_path / "alone")) as running:
        expected = running.ask(b"".join(line + b"\n" for line in good)).splitlines()
    with served(xclass.load(path), path=str(tmp_path / "mixed")) as running:
        answers = running.ask(b"".join(line + b"\n" for line in mixed)).splitlines()
    assert len(answers) == len(mixed)
    assert [answer for line, answer in zip(mixed, answers, strict=True) if line not in BAD] == expected
    for line, answer in zip(mixed, answers, strict=True):
        if line in BAD:
            assert answer.startswith(BAD[line]), (line, answer)
    assert (tmp_path / "mixed").read_bytes() == (tmp_path / "alone").read_bytes()


FOREIGN = {
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n": b"HTTP",
    b"POST /?q=a|b HTTP/1.1\r\nContent-Type: text/plain\r\n\r\nham | offer money\n": b"HTTP",
    b"BREW /tea HTTP/1.0\r\n": b"HTTP",
    b"GET /index.html\r\n": b"HTTP",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": b"HTTP",
    b"GET /" + b"a" * 10_000: b"HTTP",
    b"POST /?q=a|" + b"b" * 10_000 + b" HTTP/1.1\r\n\r\nham | offer\n": b"HTTP",
    b"POST /".ljust(4092, b"a") + b" HTTP/1.1\r\n\r\nham | offer\n": b"HTTP",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": b"TLS",
    b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nham | a\n": b"the PROXY protocol",
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c": b"the PROXY protocol",
    b"PING\r\n": b"Redis' protocol",
    b"*1\r\n$4\r\nPING\r\n": b"Redis' protocol",
    b"set k 0 0 9\r\nham | a b\r\n": b"memcached's protocol",
    b"stats\r\n": b"memcached's protocol",
    b"SSH-2.0-OpenSSH_9.6\r\n": b"SSH",
    b"EHLO example.org\r\nham | a\n": b"a protocol of mail or files",
    b"\x00\x00\x00\x08\x04\xd2\x16\x2f": b"a protocol that is not text",
}


@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_a_client_of_another_protocol_gets_one_error_and_teaches_nothing(piece):
    """Load balancers, scanners, and the page of a stranger, whose browser sends a request with any body to any port."""
    with xclass.Learner("oaa", classes=3, bits=10, learn_names=True) as learner, served(learner) as running:
        for text, protocol in FOREIGN.items():
            with connected(running.port) as connection:
                for begin in range(0, min(len(text), 200 if piece == 1 else len(text)), piece):
                    with contextlib.suppress(OSError):  # the server has closed it
                        connection.sendall(text[begin : begin + piece])
                if len(text) > 200 and piece == 1:
                    connection.sendall(text[200:])
                answer = received(connection).splitlines()
            answer = [line for line in answer if b"the line is empty" not in line]
            assert len(answer) == 1 and answer[0].startswith(b"error: this port takes lines of VW text"), (text, answer)
            assert b"the client speaks " + protocol in answer[0], (text, answer)
        assert not running.service.learned and not running.service.learner.classes


def test_lines_of_vw_text_that_resemble_another_protocol():
    lines = [
        "set |n 12 5 7", "set a|n 12 5 7", "err |msg HTTP/1.1", "err a|msg HTTP/1.1", "HTTP/1 | x",
        "PING | a", "stats | a", "get |a", "user |name login", "1|x login", "a |b starttls", "GET |a HTTP/1.1",
        "TEA /1|a HTTP" + " leaf" * 1000,
    ]  # fmt: skip
    with xclass.Learner("oaa", classes=20, bits=10, learn_names=True) as learner, served(learner) as running:
        for line in lines:
            assert not running.ask(f"{line}\n".encode()).startswith(b"error"), line


def test_nothing_is_learned_from_a_line_without_a_bar():
    with xclass.Learner("oaa", classes=3, bits=10, learn_names=True) as learner, served(learner) as running:
        answers = running.ask(b"stats 1\nHELP me\ntea\n\n \ntea | leaf\nbeer\n\xef\xbb\xbf| leaf\n").splitlines()
        no_bar = b"error: the line has no bar; a line is `label | features`, or `| features`"
        empty = no_bar.replace(b"has no bar", b"is empty")
        assert answers[:5] + answers[6:7] == [no_bar, no_bar, no_bar, empty, empty, no_bar]
        assert running.service.learned == 1 and running.service.learner.classes == ["tea"]
        for begin in (b"\xef\xbb\xbftea | leaf\n", b"\xef\xbb\xbfbeer | hops\n"):  # a byte order mark is no part of it
            assert not running.ask(begin).startswith(b"error")
        assert running.service.learner.classes == ["tea", "beer"]


def test_the_first_lines_after_others_have_told_what_labels_are_are_learned():
    with xclass.Learner() as learner:
        handler = LineHandler(learner, True)
        learner.learn_many([{"leaf": 1}, {"hops": 1}], ["tea", "beer"])
        assert handler.learns_from(b"tea | leaf\n") and not handler.learns_from(b"| leaf\n")
        assert handler.handle(b"tea | leaf\n", True)[0] == b"tea\n"
        assert learner.examples == 3


def test_a_malformed_line_without_a_bar_is_told_what_is_wrong_where_none_is_needed():
    with xclass.Learner("oaa", 3, vw_exact=True) as learner:
        answers = LineHandler(learner, True).handle(b"1\n1 x y z\n", True)[0].splitlines()
        assert answers[0] == b"1 1" and answers[1].startswith(ERROR) and b"no bar" not in answers[1], answers


def test_a_new_name_beyond_the_last_class_is_an_error(tmp_path):
    with xclass.Learner("oaa", classes=2, bits=10, learn_names=True) as learner, served(learner) as running:
        answers = running.ask(b"tea | a\ncup | b\nmilk | c\ntea | a\n").splitlines()
    assert answers[2] == b"error: column 1: " + answers[2][17:] and b"'milk' is a new name" in answers[2]
    assert answers[3] == b"tea"


def test_an_example_that_crossing_makes_too_long_is_refused_alone(tmp_path):
    long = " ".join(f"a{i}" for i in range(6000))
    with xclass.Learner("oaa", classes=3, bits=10, quadratic=["aa"]) as learner, served(learner) as running:
        text = f"1 |a x\n2 |a {long}\n3 |a y z\n|a x\n".encode()
        answers = running.ask(text).splitlines()
        assert [answer[:6] for answer in answers] == [b"1", b"error:", b"1", b"1"]
        assert b"more than the 262,144 that an example may have in a server" in answers[1]
        assert running.service.learned == 2


def test_lines_that_are_too_long_are_skipped_in_their_place(tmp_path):
    long = b"| " + b"a" * 5000
    for options in ({"max_line": 1000}, {"max_line": 1000, "timeout": 5.0}):
        with served(xclass.load(model(tmp_path, "oaa")), options) as running:
            answers = running.ask(
                b"| y1\n" + long + b"\n| y2 't\n" + long + b"\n" + b"| " + b"a" * 990 + b"\n"
            ).splitlines()
            assert len(answers) == 5
            refusal = b"error: the line is longer than 1000 bytes; start the server with a larger --max_line"
            assert [i for i, answer in enumerate(answers) if answer == refusal] == [1, 3]
            with connected(running.port) as connection:  # a line without end takes no memory
                for _ in range(300):
                    connection.sendall(b"a" * 10_000)
                connection.sendall(b"\n| y1\n")
                assert received(connection, 2).splitlines()[0] == refusal
    with served(xclass.load(model(tmp_path, "oaa")), {"max_line": 1000}) as running:
        for size in range(996, 1000):  # the newline comes by itself; two bytes more are in each line
            with connected(running.port) as connection:
                for part in (b"| " + b"a" * size, b"\n", b"| " + b"a" * size, b"a\n| y1\n"):
                    connection.sendall(part)
                    time.sleep(0.02)
                found = [answer == refusal for answer in received(connection, 3).splitlines()]
            assert found == [size > 998, size > 997, False]


def test_an_incomplete_line_is_not_learned(tmp_path):
    with served(xclass.load(model(tmp_path, "oaa"))) as running:
        answers = running.ask(b"1 | y1\n2 | y").splitlines()
        assert answers[1] == b"error: the last line has no newline at its end, so it is not used"
        assert running.service.learned == 1


def test_two_hundred_clients_get_their_own_answers_although_others_die(tmp_path):
    path = model(tmp_path, "oaa")
    with served(xclass.load(path), learns=False) as running:

        def client(number: int) -> None:
            chance = random.Random(number)
            with connected(running.port) as connection:
                if number % 10 == 0:  # dies in the middle of a line
                    connection.sendall(b"| y1 'lost\n" * chance.randrange(20) + b"3 | y")
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                for part in range(5):
                    tags = [f"c{number}-{part}-{i}" for i in range(chance.randrange(1, 30))]
                    connection.sendall("".join(f"{tag}| y{len(tag) % 12 + 1}\n" for tag in tags).encode())
                    answers = received(connection, len(tags)).decode().splitlines()
                    assert [answer.split()[1] for answer in answers] == tags

        with ThreadPoolExecutor(200) as pool:
            list(pool.map(client, range(200)))
        assert running.ask(b"| y1\n").count(b"\n") == 1
    assert not running.server.lines.connections


def test_clients_that_do_not_read_or_do_not_send_hold_up_no_other(tmp_path):
    options = {"timeout": 1.0, "idle_timeout": 3.0}
    learner = xclass.Learner("oaa", classes=12, scores=True, bits=10)
    learner.learn_many(lines(50, 1))
    with served(learner, options, learns=False) as running:
        slow, silent, deaf = (connected(running.port) for _ in range(3))
        slow.sendall(b"| y")  # and never the rest
        deaf.setblocking(False)
        sent = 0
        try:
            while sent < 50_000_000:
                sent += deaf.send(b"| y1 y2 y3\n" * 1000)
        except BlockingIOError:
            pass
        assert sent < 50_000_000  # nothing more is read from it
        began = time.monotonic()
        for _ in range(20):
            assert running.ask(b"| y1\n").count(b":") == 12
        assert time.monotonic() - began < 2
        larger = b"start the server with a larger"
        assert received(slow) == b"error: a line was not complete after 1 seconds; " + larger + b" --timeout\n"
        assert received(silent) == b"error: nothing was sent for 3 seconds; " + larger + b" --idle_timeout\n"
        deadline = time.monotonic() + 20
        while running.server.lines.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not running.server.lines.connections
        for connection in (slow, silent, deaf):
            connection.close()


def test_more_connections_than_allowed_are_refused(tmp_path):
    with served(xclass.load(model(tmp_path, "oaa")), {"max_connections": 2}) as running:
        one, two = (connected(running.port) for _ in range(2))
        for connection in (one, two):
            connection.sendall(b"| a\n")
            assert received(connection, 1)
        with connected(running.port) as three:
            assert received(three) == b"error: the server has 2 connections already; try again later\n"
        one.close()
        two.close()
        time.sleep(0.1)
        assert running.ask(b"| a\n")


def refuses(learner, message: str, options: dict | None = None, **arguments) -> None:
    """Check that a server for the learner does not start."""
    with pytest.raises(UsageError, match=message), served(learner, options, **arguments):
        pass


def test_learners_that_need_the_data_first_are_refused(tmp_path):
    for options in ({"reduction": "softmax_tree", "classes": 3}, {"reduction": "cpt", "cpt_tree": "kmeans"}):
        with xclass.Learner(bits=10, **options) as learner:
            refuses(learner, "serve it with -t")
    with xclass.Learner("recall_tree", classes=3, bits=10) as learner:
        refuses(
            learner,
            "combined with --recall_tree",
            listing=probabilities.ListingOptions(probabilities=probabilities.RAW),
        )


def test_a_unix_socket_belongs_to_its_user_and_is_removed(tmp_path):
    path = tmp_path / "s"
    for _ in range(2):
        with served(xclass.load(model(tmp_path, "oaa")), {"socket": str(path)}) as running:
            assert running.port is None and path.stat().st_mode & 0o777 == 0o600
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(b"| y1\n")
                assert received(connection, 1)
        assert not path.exists()
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(path))  # a server that was killed leaves it behind
        dead.close()
    path.unlink()
    path.write_text("kept")
    refuses(xclass.load(model(tmp_path, "oaa")), "a file with this name exists", {"socket": str(path)})
    assert path.read_text() == "kept"


def test_the_socket_and_the_files_of_a_later_server_are_left_alone(tmp_path):
    """The first server still waits for a client that does not read when the second one begins."""
    path, pid_file = tmp_path / "s", tmp_path / "pid"
    options = {"socket": str(path), "pid_file": str(pid_file)}
    start = model(tmp_path, "oaa")
    first = Served(xclass.load(start), options, {})
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.settimeout(0.5)
        deaf.connect(str(path))
        with pytest.raises(TimeoutError):
            while True:
                deaf.send(b"| y1\n" * 1000)
        first.server.stop_soon()
        wait_for(lambda: not path.exists())
        with served(xclass.load(start), options):
            assert first.is_alive
            first.stop()
            assert path.exists() and pid_file.exists()
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
    assert not path.exists() and not pid_file.exists()


def test_the_permissions_of_other_files_do_not_depend_on_a_socket(tmp_path):
    """A thread that makes a file meanwhile would get the permissions that are meant for the socket."""
    with (
        mock.patch("os.umask", side_effect=AssertionError),
        served(xclass.load(model(tmp_path, "oaa")), {"socket": str(tmp_path / "s")}),
    ):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600


def test_rows_of_numbers_are_answered_as_those_of_a_file(tmp_path):
    chance = random.Random(3)
    rows = [(i % 3, [chance.gauss(5 * (i % 3 == k), 1) for k in range(4)]) for i in range(60)]
    text = text_of([f"{label + 1} |e " + " ".join(f":{x:.3f}" for x in row) for label, row in rows])
    (tmp_path / "rows.vw").write_bytes(text)
    said = learn("-d", "rows.vw", "--means", "--dense", "e", "-f", "start", "-p", "first", cwd=tmp_path)
    assert "no example has a feature" not in said
    learn("-i", "start", "-t", "-d", "rows.vw", "-p", "answers", "--quiet", cwd=tmp_path)
    with served(xclass.load(tmp_path / "start"), learns=False) as running:
        assert running.ask(text) == (tmp_path / "answers").read_bytes()
        assert b"beyond the 4 columns" in running.ask(b"| a\n|e 4:1\n").splitlines()[1]
    with served(xclass.Learner("means", dense="e:4")) as running:
        assert running.ask(text, 50) == (tmp_path / "first").read_bytes()
