"""Logs of Caddy, CloudFront and Traefik are read as they are, by their names; lines are samples of documentation."""

import datetime as dt

import polars as pl
import pytest

from wpinq.errors import SourceError
from wpinq.sources import open_source
from wpinq.sources.check import check
from wpinq.sources.text.servers import FORMATS

# caddyserver.com/docs/logging
CADDY = """\
{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Accept-Encoding":["gzip, deflate, br"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read": 0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Encoding":["gzip"],"Content-Type":["text/html; charset=utf-8"],"Vary":["Accept-Encoding"]}}
{"level":"info","ts":1646861400.1,"msg":"serving initial configuration"}
{"level":"error","ts":1646861402.5,"logger":"http.log.error","msg":"no such host","request":{"remote_ip":"127.0.0.1","method":"GET","uri":"/x"},"duration":0.1,"status":502}
{"level":"info","ts":"2026-03-22T14:50:51.525Z","logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"10.0.0.1","client_ip":"192.0.2.7","proto":"HTTP/1.1","method":"POST","host":"a.example","uri":"/form?q=1","headers":{"Referer":["https://a.example/"]}},"user_id":"ann","duration":0.5,"size":7,"status":404}
"""  # noqa: E501
# docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide, standard-logs-reference and (the second) as it was in 2014
CLOUDFRONT = """\
#Version: 1.0
#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end
2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0;%20Win64;%20x64)%20AppleWebKit/537.36%20(KHTML,%20like%20Gecko)%20Chrome/78.0.3904.108%20Safari/537.36\t-\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\td111111abcdef8.cloudfront.net\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-
2014-05-23\t01:13:12\tLAX1\t2390282\t192.0.2.202\tGET\td111111abcdef8.cloudfront.net\t/soundtrack/happy.mp3\t304\twww.unknownsingers.com\tMozilla/4.0%20(compatible;%20MSIE%207.0;%20Windows%20NT%205.1)\ta=b&c=d
nonsense
"""  # noqa: E501
# doc.traefik.io/traefik/observability/access-logs, the common format as it is written there
TRAEFIK = """\
10.0.0.2 - - [11/Jun/2022:00:18:24 +0000] "GET /whoami HTTP/1.1" 200 385 "-" "curl/7.79.1" 7 "whoami@docker" "http://10.0.2.6:80" 5ms
10.0.0.3 - ann [11/Jun/2022:02:18:24 +0200] "GET /a b HTTP/1.1" 404 19 "-" "-" 8 "-" "-" 0ms
10.0.0.2 - - [11/Jun/2022:00:18:24 +0000] "GET /whoami HTTP/1.1" 200 385 "-" "curl/7.79.1"
"""  # noqa: E501
TRAEFIK_JSON = """\
{"ClientAddr":"10.0.0.2:57398","ClientHost":"10.0.0.2","ClientPort":"57398","ClientUsername":"-","DownstreamContentSize":385,"DownstreamStatus":200,"Duration":5386497,"OriginContentSize":385,"OriginDuration":5241769,"OriginStatus":200,"Overhead":144728,"RequestAddr":"traefikee-test.vsp.local","RequestContentSize":0,"RequestCount":7,"RequestHost":"traefikee-test.vsp.local","RequestMethod":"GET","RequestPath":"/whoami","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":"whoami@docker","ServiceAddr":"10.0.2.6:80","ServiceName":"whoami@docker","ServiceURL":{"Scheme":"http","Opaque":"","User":null,"Host":"10.0.2.6:80"},"StartLocal":"2022-06-11T00:18:24.95226167Z","StartUTC":"2022-06-11T00:18:24.95226167Z","entryPointName":"web","level":"info","msg":"","request_User-Agent":"test-scanner/1.0","time":"2022-06-11T00:18:24Z"}
{"level":"error","msg":"field not found","time":"2022-06-11T00:18:24Z"}
"""
SAMPLES = {"caddy": CADDY, "cloudfront": CLOUDFRONT, "traefik": TRAEFIK, "traefik_json": TRAEFIK_JSON}
NAMES = ("time", "host", "user", "method", "page", "protocol", "status", "size", "referrer", "agent")


def instant(*parts):
    return dt.datetime(*parts, tzinfo=dt.UTC)


WINDOWS = (
    "Mozilla/5.0%20(Windows%20NT%2010.0;%20Win64;%20x64)%20AppleWebKit/537.36%20(KHTML,%20like%20Gecko)"
    "%20Chrome/78.0.3904.108%20Safari/537.36"
)
READ = {
    "caddy": [
        (instant(2022, 3, 9, 21, 30, 1, 524102), "127.0.0.1", None, "GET", "/", "HTTP/2.0", 200, 10900, None,
         "curl/7.82.0"),
        (instant(2026, 3, 22, 14, 50, 51, 525000), "10.0.0.1", "ann", "POST", "/form?q=1", "HTTP/1.1", 404, 7,
         "https://a.example/", None),
    ],
    "cloudfront": [
        (instant(2019, 12, 4, 21, 2, 31), "192.0.2.100", "GET", "/index.html", "HTTP/2.0", 200, 392, None, WINDOWS),
        (instant(2014, 5, 23, 1, 13, 12), "192.0.2.202", "GET", "/soundtrack/happy.mp3", None, 304, 2390282,
         "www.unknownsingers.com", "Mozilla/4.0%20(compatible;%20MSIE%207.0;%20Windows%20NT%205.1)"),
    ],
    "traefik": [
        (instant(2022, 6, 11, 0, 18, 24), "10.0.0.2", None, "GET", "/whoami", "HTTP/1.1", 200, 385, None,
         "curl/7.79.1"),
        (instant(2022, 6, 11, 0, 18, 24), "10.0.0.3", "ann", None, None, None, 404, 19, None, None),
    ],
    "traefik_json": [
        (instant(2022, 6, 11, 0, 18, 24, 952261), "10.0.0.2", None, "GET", "/whoami", "HTTP/1.1", 200, 385, None,
         "test-scanner/1.0"),
    ],
}  # fmt: skip


def written(tmp_path, form, text=None):
    path = tmp_path / "access.log"
    path.write_text(SAMPLES[form] if text is None else text)
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_samples_of_the_documentation_are_read(tmp_path, form):
    reader = open_source(written(tmp_path, form), format=form)
    names = [name for name in NAMES if name in reader.schema]
    assert [row for frame in reader.batches(names) for row in frame.rows()] == READ[form]


@pytest.mark.parametrize("form", FORMATS)
def test_each_line_is_read_by_itself(tmp_path, form):
    lines = SAMPLES[form].splitlines()
    alone = []
    for line in lines:
        reader = open_source(written(tmp_path, form, line + "\n"), format=form)
        alone += [row for frame in reader.batches(reader.schema.names) for row in frame.rows()]
    reader = open_source(written(tmp_path, form), format=form)
    assert alone == [row for frame in reader.batches(reader.schema.names) for row in frame.rows()]


def test_check_counts_what_is_no_request_and_names_the_format(tmp_path):
    wrong = {"caddy": 2, "cloudfront": 1, "traefik": 1, "traefik_json": 1}  # what begins with # is a comment
    for form, number in wrong.items():
        path = written(tmp_path, form)
        report = check(path.__fspath__(), format=form)
        assert (report.rows, report.dropped) == (len(READ[form]), number)
        hints = check(path.__fspath__()).hints
        assert any(f"{len(READ[form])} of these lines fit --format {form}" in hint for hint in hints), hints


def test_messages_of_a_topic_are_read_alike():
    import pyarrow as pa

    from wpinq.core.records.schema import Column, Kind, Schema
    from wpinq.streaming.messages import read_as

    lines, schema = CADDY.splitlines(), Schema((Column("page", Kind.TEXT),))
    times = pl.Series("arrived", range(len(lines)), dtype=pl.Int64)
    found = read_as("caddy")(pa.array([line.encode() for line in lines], pa.large_binary()), times, schema)
    assert found["page"].to_list() == ["/", "/form?q=1"]
    assert found["arrived"].to_list() == [0, 3]


def test_a_name_that_is_none_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(SourceError, match="caddy, cloudfront, traefik, traefik_json"):
        open_source(written(tmp_path, "caddy"), format="cady")


def test_a_name_with_dots_is_a_path_of_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"a": {"b": [1, 7], "c": "x"}}\n{"a.b.1": 5, "a": {"b": [1, 7]}}\n{"a": 3}\n{"a": {"b": {"1": 2}}}\n'
    )
    reader = open_source(path, columns={"a.b.1": int, "a.c": str})
    (frame,) = reader.batches(["a.b.1", "a.c"])
    assert frame.rows() == [(7, "x"), (5, None), (None, None), (None, None)]
