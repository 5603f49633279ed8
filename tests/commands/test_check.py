"""``check`` with a file: no network."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_rep.commands import check as check_module

from .conftest import ROBOTS, Done, Run, write


def check(run: Run, *arguments: str, agent: str = "mybot") -> Done:
    return run("check", "--robots", "robots.txt", "-a", agent, *arguments)


CLOSED = "User-agent: *\nDisallow: /"
INDEX = "User-agent: *\nAllow: /d/index.html\n"
GOOGLEBOT = "User-agent: Googlebot\nDisallow: /a"


def test_one_url_is_explained(run: Run) -> None:
    """The page on ``check`` has the text of an explanation."""
    done = check(run, "/private/page")
    assert done.out.startswith("disallowed  /private/page\n\n  2 Disallow: /private\n")
    assert "line 4, Disallow: /private/p is the longest rule that matches\n" in done.out
    assert (done.code, done.err) == (1, "")
    done = check(run, "/private/p%61ge", "--json")
    record = done.record
    assert done.code == 1
    assert record["rule"] == {"line": 4, "allow": False, "pattern": "/private/p"}
    assert [rule["line"] for rule in record["other_rules"]] == [2]
    assert record["context"][1:3] == ["  3 Allow: /private/press/", "> 4 Disallow: /private/p"]
    assert record["pace"] == "Crawl-delay: 5"
    assert record["usage"]["evaluated"] == {"train-ai": False}
    assert record["robots_txt"]["source"] == "file"


def test_several_answers_are_lines(run: Run) -> None:
    done = check(run, "/private/x", "https://example.com/", "mailto:a@b.example")
    assert done.out.splitlines() == [
        "disallowed /private/x  line 2, Disallow: /private, for *",
        "allowed    https://example.com/  no rule matches",
        "allowed    mailto:a@b.example  this scheme has no robots.txt",
    ]
    assert (done.code, done.err) == (1, "note: 3 answers: 2 allowed, 1 disallowed, 0 unknown\n")
    done = check(run, "/a", "-a", "otherbot")
    assert done.out.splitlines() == [
        "allowed    /a  mybot: no rule matches",
        "disallowed /a  otherbot: line 9, Disallow: /, for otherbot",
    ]
    write(urls_txt="/a\n")
    assert check(run, "--from", "urls.txt").err.startswith("note: 1 answer: ")


@pytest.mark.parametrize(
    ("agent", "text", "url", "code", "why"),
    [
        ("mybot", "", "/", 0, "no rule for this crawler"),
        ("mybot", "User-agent: mybot\nDisallow:", "/", 0, "no rule for this crawler"),
        ("mybot", "User-agent: mybot\nDisallow: /a", "/", 0, "no rule matches"),
        ("mybot", CLOSED, "/robots.txt", 0, "no rule for this crawler"),
        ("mybot", f"{CLOSED}a", "/a", 1, "is the only rule that matches"),
        ("mybot", f"{INDEX}Disallow: /d", "/d/", 0, "is the longest rule that matches"),
        ("mybot", f"{INDEX}Disallow: /dd\nDisallow: /*", "/d/", 0, "is the longest rule that"),
        ("mybot", f"{INDEX}Disallow: /d/*", "/d/", 0,
         "wins over an equally long rule, as an Allow"),
        ("mybot", f"{CLOSED}\nAllow: /", "/", 0,
         "wins over an equally long rule, as an Allow does"),
        ("mybot", f"{CLOSED}\nDisallow: *", "/", 1,
         "line 2, Disallow: / is the first of the longest"),
        ("AdsBot-Google", CLOSED, "/a", 0, "AdsBot-Google ignores the group for *"),
        ("Googlebot-Image", GOOGLEBOT, "/a", 1, "Googlebot-Image, by the group for googlebot"),
    ],
)  # fmt: skip
def test_reasons(run: Run, agent: str, text: str, url: str, code: int, why: str) -> None:
    write(robots_txt=text)
    done = check(run, url, agent=agent)
    assert (done.code, why in " ".join(done.out.split())) == (code, True)
    assert check(run, url, "--json", agent=agent).record["allowed"] is not bool(code)


def test_the_settings_name_the_default_crawler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["check", "--robots", "robots.txt", "/a"]
    done = run(*arguments, "-s", "ROBOTSTXT_USER_AGENT=otherbot")
    assert (done.code, done.err) == (1, "")
    done = run(*arguments)  # outside of a project
    assert "*, by the group for *" in " ".join(done.out.split())
    assert (done.code, done.err) == (0, "")
    write(scrapy_cfg="[settings]\ndefault = project\n")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "json")  # a module without settings
    done = run(*arguments)
    assert "warning: Scrapy is the default name of every Scrapy crawler" in done.err


def test_urls_with_a_password_and_without_a_scheme(run: Run) -> None:
    done = check(run, "http://user:password@example.com/a", "--json")
    assert done.record["url"] == "http://example.com/a"
    assert "password" not in done.out + done.err
    done = check(run, "example.com/a", "b.example", "c.example", "d.example", "e.example", "--json")
    assert done.records[0]["url"] == "https://example.com/a"
    assert done.err.splitlines() == [
        "note: example.com/a has no scheme: it is taken for https://example.com/a",
        "note: b.example has no scheme: it is taken for https://b.example",
        "note: c.example has no scheme: it is taken for https://c.example",
        "note: 2 more: URLs without a scheme",
    ]


def test_what_a_site_sends_is_escaped_and_cut(run: Run) -> None:
    evil = "/\x1b[2J\u202e[red]" + "x" * 3000
    write(
        robots_txt=f"User-agent: *\nDisallow: {evil}\nCrawl-delay: 1\nContent-Signal: \x1b[1m=no\n"
        "License: https://example.com/\x1b[2J\nSitemap: \x1b]0;x\x07\n"
    )
    in_lines = check(run, evil, "/b")
    for done in (check(run, evil), run("show", "robots.txt"), in_lines):
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out
        assert "[red]" in done.out  # no markup
        assert len(done.out) < 5000
        assert done is in_lines or max(map(len, done.out.splitlines())) <= 80
    assert len(check(run, evil, "--json").record["rule"]["pattern"]) <= 1000


@pytest.mark.no_cover
def test_500_kib_of_rules(run: Run) -> None:
    rules = "".join(f"Disallow: /a{'*' * (number % 3)}{number}\n" for number in range(40_000))
    body = f"User-agent: *\nDisallow: /a\n{rules}"
    assert len(body) > 512_000
    write(robots_txt=body)
    record = check(run, "/a12345", "--json").record
    assert record["rule"]["line"] > 1000
    assert record["context"]
    assert check(run, "/a12345").code == 1
    shown = run("show", "robots.txt")
    assert "more rules" in shown.out
    assert len(shown.out.splitlines()) < 300


def test_a_byte_that_is_not_utf_8_is_percent_encoded(run: Run) -> None:
    write(robots_txt="User-agent: *\nDisallow: /%E9$\n")
    write(urls_txt=b"/\xe9\nhttps://example.com/\xe9\n/\xe9x\n")
    done = check(run, "--from", "urls.txt", "--json")
    assert [record["allowed"] for record in done.records] == [False, False, True]
    assert done.records[0]["url"] == "/%E9"
    assert check(run, "/\udce9").code == 1


@pytest.mark.parametrize("url", ["admin", "admin/x.y", "index.html", "?page=1"])
def test_a_path_needs_its_slash(run: Run, url: str) -> None:
    done = check(run, url)
    assert (done.code, done.out) == (2, "")
    assert f"{url} is neither a path nor a URL: write /{url}, or https://{url}\n" in done.err
    write(urls_txt=f"{url}\n/private\n")
    done = check(run, "--from", "urls.txt", "--json")
    assert [record["reason"] for record in done.records] == ["invalid-url", "rules"]
    assert done.code == 3


def test_a_misspelled_crawler(run: Run) -> None:
    done = check(run, "/a", agent="Googlbot")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "scrapy-rep: no known crawler has the product token 'Googlbot': write 'Googlebot' if you "
        "mean that crawler; for another crawler, write 'Googlbot/1.0'\n"
    )
    assert check(run, "/a", agent="Googlbot/1.0").code == 0
    write(robots_txt="User-agent: googlbot\nDisallow: /")
    assert check(run, "/a", agent="Googlbot").code == 1


def test_a_policy_token_is_answered_with_the_usage(run: Run) -> None:
    write(robots_txt="User-agent: *\nContent-Signal: ai-train=no\nAllow: /")
    done = check(run, "/a", agent="__usage_ai-training")
    assert "Usage       train-ai: refused; Content-Signal: ai-train=no\n" in done.out
    assert check(run, "/a", "--json", agent="__usage_ai-training").record["usage"] == {
        "evaluated": {"train-ai": False}, "stated": ["Content-Signal: ai-train=no"],
    }  # fmt: skip


# Files with URLs.


def test_urls_of_a_file_get_brief_records(run: Run) -> None:
    write(urls_txt="https://example.com/ü\nmailto:x\n//[bad/\n")
    records = check(run, "/private/x", "--from", "urls.txt", "--json").records
    assert [record["allowed"] for record in records] == [False, True, True, False]
    assert all("context" not in record for record in records)
    assert records[0]["rule"] == {"line": 2, "allow": False, "pattern": "/private"}
    assert records[1]["url"] == "https://example.com/ü"
    assert records[3]["reason"] == "invalid-host"


@pytest.mark.parametrize("url", ["//[bad/", "http://[bad/", "ex ample.com"])
def test_a_url_that_is_none(run: Run, url: str) -> None:
    """A crawl drops it. It is invalid all the same, which is more than a disallow."""
    done = check(run, url, "--json")
    assert (done.code, done.record["reason"], done.record["allowed"]) == (3, "invalid-host", False)
    assert check(run, url, "/private").code == 3


def test_a_file_without_urls(run: Run) -> None:
    for name, text in (("urls.txt", "# nothing\n"), ("urls.jsonl", "")):
        Path(name).write_text(text)
        done = check(run, "--from", name)
        assert (done.code, done.out, done.err) == (0, "", "note: there are no URLs to check\n")


def test_a_long_file_is_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "MAX_BATCH", 256)
    urls = [f"/private/{number}" for number in range(600)]
    write(urls_txt="\n".join([*urls, "https://[bad/"]))
    done = check(run, "--from", "urls.txt", "-a", "otherbot")
    lines = done.out.splitlines()
    assert lines[0] == "disallowed /private/0  mybot: line 2, Disallow: /private, for *"
    assert len(lines) == 1_202
    assert done.err == "note: 1,202 answers: 0 allowed, 1,200 disallowed, 2 unknown\n"
    assert len(check(run, "--from", "urls.txt", "--json").records) == 601


def test_standard_input(run: Run) -> None:
    arguments = ("check", "--robots", "robots.txt", "--from", "-", "-a", "mybot", "--json")
    done = run(*arguments, stdin="/private/a\n/b\n")
    assert [record["allowed"] for record in done.records] == [False, True]
    done = run("check", "--robots", "-", "/private", "-a", "x", "--json", stdin=ROBOTS)
    assert done.record["allowed"] is False
    assert len(run("show", "-", "--json", stdin=ROBOTS).record["groups"]) == 2


def test_what_was_read_before_an_error_is_written(run: Run) -> None:
    write(urls_jsonl="".join(f'{{"url": "/{number}"}}\n' for number in range(500)) + "broken\n")
    done = check(run, "--from", "urls.jsonl", "--json")
    assert done.code == 2
    assert "cannot read urls.jsonl as URLs: line 501: " in done.err
    assert len(done.records) >= 448


@pytest.mark.parametrize("obeys", [None, False, True])
def test_a_project_that_obeys_nothing_is_told_so(run: Run, obeys: bool | None) -> None:
    project = Settings()
    if obeys is not None:
        project.set("ROBOTSTXT_OBEY", obeys, priority="project")
    done = run("check", "--robots", "robots.txt", "-a", "mybot", "/a", settings=project)
    assert ("a crawl of this project ignores all of this" in done.err) is (obeys is False)
