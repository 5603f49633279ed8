"""Product tokens of User-Agent headers and of user-agent lines."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.agents import (
    AgentWarning,
    parse_user_agent,
    product_tokens,
    tokens_of_line,
)

CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0"
ANDROID = f"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) {CHROME} Mobile Safari/537.36"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 14_7_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
    " Gecko) Version/14.1.2 Mobile/15E148 Safari/604.1"
)
X11 = "Mozilla/5.0 (X11; Linux x86_64; {}) " + CHROME + " Safari/537.36"
WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; {}) " + CHROME + " Safari/537.36"
# The headers that operators document, by their form: what each has in place of "{}".
DOCUMENTED = {
    "{}": "Googlebot-Image/1.0|Google-Safety",
    "{} (+https://bot.example/a.html)": "APIs-Google|meta-externalagent/1.1",
    "{} (https://bot.example/faq/)": "CCBot/2.0",
    "{} (https://bot.example/what, bot+a@bot.example)": "rogerbot/1.2",
    "{} (compatible; Mozilla/5.0; Apache-HttpClient +http://bot.example)": "LinkedInBot/1.0",
    "{} 1.0 (+https://api.bot.example/robots)": "Slackbot-LinkExpanding",
    "{} (like TwitterBot)": "TelegramBot",
    "{}; (+http://bot.example/bot.html)": "FeedFetcher-Google|DuckAssistBot/1.2",
    "{} web spider/4.0(+http://bot.example/#07)": "Sogou",
    "{} Frog SEO Spider/20.0": "Screaming",
    "{} crawler/1.0": "my",
    X11: "Storebot-Google/1.0|MJ12bot/v1.4.8",
    WINDOWS: "mybot/1.0",
    "Mozilla/5.0 (Linux; Android 8.0; Pixel 2 Build/OPD3.170816.012; {}) " + CHROME:
        "Storebot-Google/1.0",
    "Mozilla/5.0 (Windows NT 6.1; Trident/7.0; {}; rv:11.0) like Gecko": "mybot/1.0",
    "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; {})": "mybot/1.0",
    "Mozilla/5.0 (compatible; Windows NT 10.0; {})": "mybot/1.0",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/534+ (KHTML, like Gecko) {}":
        "BingPreview/1.0b",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) {} Safari/537.36":
        "HeadlessChrome/130.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + CHROME + " {} (+https://bot.example)":
        "mybot/1.0",
    IPHONE + " {}": "BingPreview/1.0b",
    IPHONE + " (compatible; {}; +http://bot.example)": "AdsBot-Google-Mobile|YandexMobileBot/3.0",
    ANDROID + " (compatible; {}; +http://bot.example)":
        "Googlebot/2.1|Google-CloudVertexBot|Google-Read-Aloud|Google-GeminiNotebook|PetalBot",
    ANDROID + " (compatible; {})": "GoogleOther",
    ANDROID + " (compatible; {}; bot@bot.example)": "Bytespider",
    "Mozilla/5.0 (Linux; Android 5.0; SM-G920A) AppleWebKit (KHTML, like Gecko) Chrome Mobile"
    " Safari (compatible; {}; +http://bot.example)": "AdsBot-Google-Mobile",
    "(Various mobile device types) (compatible; {}; +http://bot.example)":
        "Mediapartners-Google/2.1",
    "DoCoMo/2.0 N905i(c100;TB;W24H16) (compatible; {}; +http://bot.example)":
        "Mediapartners-Google/2.1",
    "SAMSUNG-SGH-E250/1.0 Profile/MIDP-2.0 Configuration/CLDC-1.1 UP.Browser/6.2.3.3 (GUI) MMP/2.0"
    " (compatible; {}; +http://bot.example)": "Googlebot-Mobile/2.1",
    "Mozilla/5.0 (compatible; {})":
        "Google-Site-Verification/1.0|Google-CWS|Google-InspectionTool/1.0;",
    "Mozilla/5.0 (compatible; {}; +http://bot.example/)":
        "adidxbot/2.0|SemrushBot/7~bl|Baiduspider/2.0|YandexBot/3.0|Pinterestbot/1.0|AhrefsBot/7.0"
        "|Discordbot/2.0|YouBot/1.0|DataForSeoBot/1.0|SeekportBot",
    "Mozilla/5.0 (compatible; {}; https://bot.example/)": "DuckDuckBot-Https/1.1|MJ12bot/v1.4.8",
    "Mozilla/5.0 (compatible; {} +http://bot.example/)": "archive.org_bot",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {}; +http://bot.example)"
    " Chrome/130.0.0.0 Safari/537.36": "Googlebot/2.1|bingbot/2.0|Amazonbot/0.1",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {}; +https://bot.example)":
        "GPTBot/1.3|PerplexityBot/1.0|MistralAI-User/1.0",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {}; +bot@bot.example)":
        "ClaudeBot/1.0|Claude-User/1.0",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; {}; +https://bot.example":
        "OAI-SearchBot/1.0|ChatGPT-User/1.0|GPTBot/1.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + CHROME + " Safari/537.36; compatible; {};"
    " +https://bot.example": "OAI-SearchBot/1.3",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/13.1.1 Safari/605.1.15 ({}; +http://bot.example)": "Applebot/0.1",
    # A name of a browser or a phone may be that of a crawler where the header begins with it.
    "{} (+https://bot.example)": "Focus/1.0|X/1.0",
    "{} (compatible; +https://bot.example)": "Nokia-bot/1.0",
    "{} (a bot; +https://bot.example)": "Samsung-bot/1.0",
    "{} (compatible; Googlebot/2.1; +http://bot.example)": "mybot/1.0",
    # Not documented.
    "{}; like Googlebot": "FooBot/1.0",
    "{} more": "MyBot/1.0",
    "{} (+http://x)": "MyBot",
    "{} (+http://x) more": "MyBot",
    "Mozilla/5.0 (compatible;{};+https://bot.example/bot)": "PetalBot",
    "Mozilla/5.0 ({}; bot@example.com)": "FooBot",
    "Mozilla/5.0 (compatible; {} Bot (test); +http://x) Gecko/20100101": "Foo",
    "Mozilla/5.0 (compatible; MSIE 8.0; {}; +http://x)": "FooBot/1.0",
    "Mozilla/5.0 (X11) AppleWebKit/1 (KHTML, like Gecko) Chrome/1 Safari/537.36 {}": "MyBot/1",
    "Mozilla/5.0 (compatible; {}; +http://bot.example/bot.htm": "bingbot/2.0",  # without an end
}  # fmt: skip
FIRST_WORDS = ("Slackbot-", "Sogou web", "Screaming Frog", "my crawler")
"""Headers that begin so have more than one word before the comment."""


@pytest.mark.rule("Token of a User-Agent header")
@pytest.mark.parametrize(
    ("header", "product"),
    [(form.format(one), one) for form, all_ in DOCUMENTED.items() for one in all_.split("|")],
)
def test_headers(header: str, product: str) -> None:
    name = product.rstrip(";").partition("/")[0].lower()
    doubt = AgentWarning.FIRST_WORD if header.startswith(FIRST_WORDS) else None
    assert parse_user_agent(header) == ((name,), doubt)
    assert product_tokens(header) == product_tokens(header.encode()) == (name,)


# What ordinary browsers have in the comment on their platform, and behind it.
PLATFORMS = """\
Windows NT 10.0; WOW64; Trident/7.0; Touch; .NET4.0C; .NET CLR 3.5.30729; Tablet PC 2.0; rv:11.0
compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; SLCC2; Media Center PC 6.0; InfoPath.3
compatible; MSIE 10.0; Windows Phone 8.0; Trident/6.0; IEMobile/10.0; ARM; Touch; NOKIA; Lumia 920
compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; chromeframe/11.0.696.57
compatible; Windows NT 10.0
Windows NT 10.0; Win64; x64; +https://browser.example
Windows NT 10.0; Win64; x64; Xbox; Xbox One
X11; Linux x86_64; +https://browser.example
X11; Ubuntu; Linux x86_64; rv:109.0
X11; CrOS x86_64 14541.0.0
Macintosh; Intel Mac OS X 10_15_7
iPhone; CPU iPhone OS 16_5 like Mac OS X
iPhone; U; CPU iPhone OS 4_3_2 like Mac OS X; en-us
iPod touch; CPU iPhone OS 12_0 like Mac OS X
Android 13; Mobile; rv:109.0
Linux; Android 10; SM-G973F Build/QP1A.190711.020; wv
Linux; Android 7.0; Moto G (5) Build/NPPS25.137-15-11; wv
Linux; Android 6.0.1; Build/13.1; CrKey/1.54.250320
Linux; U; Android 4.0.3; de-ch; HTC Sensation Build/IML74K
Linux; U; Tizen/1.0; en-us
SMART-TV; Linux; Tizen 5.0
SmartHub; SMART-TV; U; Linux/SmartTV; Maple2012
Web0S; Linux/SmartTV
Linux armv7l; HbbTV/1.2.1 (; Philips; 40HFL5010T12; ; PHILIPSTV; CE-HTML/1.0 NETTV/4.4.1)
PlayStation; PlayStation 5/2.26
webOS/1.4.0; U; en-US
hp-tablet; Linux; hpwOS/3.0.2; U; en-US
SymbianOS/9.4; Series60/5.0 NokiaN97-1/12.0.024; Profile/MIDP-2.1 Configuration/CLDC-1.1; en-us
Symbian/3; Series60/5.2; en-us
BlackBerry; U; BlackBerry 9900; en
J2ME/MIDP; Opera Mini/7.1.32052/29.3709; U; en
"""
PRODUCTS = """\
like iPhone OS 7_0_3 Mac OS X AppleWebKit/537 (KHTML, like Gecko) Mobile Safari/537
76.0.3809.146/6.0 TV Safari/537.36
Chrome/1 Safari/1 WebAppManager
Chrome/1 Safari/1 CrKey/1.56.500000 DeviceType/Chromecast
Chrome/5.0.375.127 Large Screen Safari/533.4 GoogleTV/162671
Chrome/1 Safari/1 Edg/124.0.2478.51
Chrome/1 Safari/1 Vivaldi/6.7
Chrome/122.0.0.0 YaBrowser/24.4.0.0 Yowser/2.5 Safari/537.36
Chrome/122.0.0.0 Whale/3.26.244.14 Safari/537.36
Version/16.5 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15
GSA/277.0.555192628 Mobile/15E148 Safari/604.1
SamsungBrowser/21.0 Chrome/110.0.5481.154 Mobile Safari/537.36
Tizen Browser/1.0 Mobile
Silk/108.4.6 like Chrome/108.0.5359.160 Safari/537.36
OculusBrowser/27.0 Chrome/112.0 VR Safari/537.36
Chrome/114.0.0.0 Safari/537.36 ArkWeb/4.1.6.1 Mobile
NF/4.0.0.5.10 NintendoBrowser/5.1.0.13343
Version/4.0 Kindle/3.0 (screen 600x800; rotate)
Version/5.0 Safari/534 LG Browser/5.00.00(+mouse+3D+SCREEN; LGE; 42LM640T-ZA; 04.02.17;)
HbbTV/1.2.1 (; Samsung; SmartTV2013; T-FXPDEUC-1102.2; ;) WebKit
Gecko/2009030423 Ubuntu/8.10 (intrepid) Firefox/3.0.7 (.NET CLR 3.5.30729)
Gecko/48.0 Firefox/48.0 KAIOS/2.5
Version/4.0 Chrome/88.0 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/304.0.0.39.118;]
"""
BROWSERS = [
    *(f"Mozilla/5.0 ({one}) {CHROME} Safari/1" for one in PLATFORMS.splitlines()),
    *(
        f"Mozilla/5.0 (X11) AppleWebKit/1 (KHTML, like Gecko) {one}"
        for one in PRODUCTS.splitlines()
    ),
    "Opera/9.80 (Android; Opera Mini/36.2.2254/119.132; U; id) Presto/2.12.423 Version/12.16",
    "Dalvik/2.1.0 (Linux; U; Android 9; ADT-2 Build/PTT5.181126.002)",
    "Mozilla/5.0 (compatible; Konqueror/4.5; Linux) KHTML/4.5.4 (like Gecko)",
]


@pytest.mark.rule("Token of a User-Agent header")
@pytest.mark.parametrize(
    "header",
    [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:126.0) Gecko/20100101 Firefox/126.0",
        "Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko",
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1)",
        "Mozilla/5.0 (compatible)",
        "Mozilla/5.0 (compatible; +http://x)",
        "(compatible; ; )",
        "",
        "бот",
        "бот/1.0",
        "http://example.com/",
        "Mozilla/5.0 (compatible) http://example.com:80/",
        *BROWSERS,
    ],
)
def test_headers_without_a_token(header: str) -> None:
    assert parse_user_agent(header) == ((), AgentWarning.NO_TOKEN)


@pytest.mark.rule("Tokens with other characters")
@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Foobot*", "foobot"), ("Foobot:1", "foobot"), ("Foobot;x", "foobot"), ("a,b", "a"),
        ("Foo#bot", "foo"), ("MJ12bot*", "mj12bot"), ("Foobot*/1.0", "foobot"),
        ("Foobot:1/2.0 (+http://x)", "foobot"), ("Foobot#1 (x)", "foobot"),
        ("Mozilla/5.0 Foobot:1/2", "foobot"), ('"Foobot"', None), ("*Foobot", None), (":1", None),
    ],
)  # fmt: skip
def test_a_token_ends_before_what_no_line_can_match(value: str, token: str | None) -> None:
    expected = ((token,), AgentWarning.CUT) if token else ((), AgentWarning.NO_TOKEN)
    assert parse_user_agent(value) == expected


@pytest.mark.rule("Tokens with other characters")
@pytest.mark.parametrize("value", ["MJ12bot", "foo.bot", "a_b-c", "80legs", "a!$%&'+^`|~"])
def test_a_token_that_a_line_can_match_is_not_cut(value: str) -> None:
    assert parse_user_agent(value) == ((value.lower(),), None)
    assert value.lower().encode() in tokens_of_line(value.encode())


@pytest.mark.rule("Several tokens")
def test_sequences_keep_their_order() -> None:
    images = ["Googlebot-Images", "Googlebot", "googlebot"]
    assert product_tokens(images) == ("googlebot-images", "googlebot")
    assert product_tokens(("Foo/1.0 (x)", "*", "Bar")) == ("foo", "bar")
    assert product_tokens([]) == ()
    assert parse_user_agent("*") == ((), None)
    assert parse_user_agent(["my crawler", ""]).warning is AgentWarning.FIRST_WORD
