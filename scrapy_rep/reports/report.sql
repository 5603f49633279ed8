-- The records of a report, as views over its events. The columns of a view are the fields of a
-- record; those with [msgspec] in their name are JSON, which a converter of reading.py decodes.
--
-- request, fetch, pace, page, file: the events. ``place`` is the position of an event in all logs,
-- and ``run`` the number of its log. limits: what a report has at most, in one row.

CREATE INDEX fetch_of ON fetch(run, origin, place);

-- Exempt requests whose robots.txt was not in memory are judged by the one that held then, else by
-- the first one after them. A path that was cut is not judged.
CREATE INDEX fetched_at_of ON fetch(origin, fetched_at);
ALTER TABLE request ADD COLUMN judging;
ALTER TABLE request ADD COLUMN judged_at;
UPDATE request SET judging = coalesce(
  (SELECT place FROM fetch WHERE fetch.origin = request.origin AND fetched_at <= request.at
    AND coalesce(expires_at, fetched_at) > request.at AND (failure IS NULL OR effect = 'rules')
    ORDER BY fetched_at DESC, place DESC LIMIT 1),
  (SELECT place FROM fetch WHERE fetch.origin = request.origin AND fetched_at > request.at
    AND failure IS NULL ORDER BY fetched_at, place LIMIT 1))
WHERE kind = 'sent' AND reason = 'exempt' AND pattern IS NULL AND detail IS NULL
  AND path NOT LIKE '%…';
UPDATE request SET (judging, judged_at) = (SELECT CASE effect
    WHEN 'rules' THEN site_verdict(request.run, (SELECT text FROM file
      WHERE file.sha256 = fetch.sha256), request.origin || request.path)
    WHEN 'allow' THEN json_array(NULL, NULL, NULL, NULL, 'its robots.txt allows it')
    ELSE json_array(NULL, NULL, NULL, NULL, 'status ' || status) END,
  CASE WHEN fetched_at > request.at THEN fetched_at END
  FROM fetch WHERE fetch.place = judging) WHERE judging IS NOT NULL;
UPDATE request SET agent = json_extract(judging, '$[0]'), allow = json_extract(judging, '$[1]'),
  pattern = json_extract(judging, '$[2]'), line = json_extract(judging, '$[3]'),
  detail = json_extract(judging, '$[4]') WHERE judging IS NOT NULL;

-- What decided about requests. The robots.txt that decided is the last one that this run had of the
-- origin.
CREATE TABLE decided AS SELECT origin, reason, allowed,
  CASE WHEN reason IN ('rules', 'no-rules', 'too-complex', 'visit-time') THEN (
    SELECT sha256 FROM fetch WHERE fetch.run = request.run AND fetch.origin = request.origin
    AND fetch.place < request.place ORDER BY fetch.place DESC LIMIT 1) END AS sha256,
  agent, allow, pattern, line, detail, iif(judging IS NULL, NULL, judged_at) AS judged_at,
  sum(kind = 'sent') AS sent, sum(kind = 'dropped') AS dropped,
  sum(kind = 'final-url') AS final_url,
  sum(kind = 'delayed') AS delayed, sum(seconds * (kind = 'delayed')) AS delay_seconds,
  sum(kind = 'waited') AS waited, sum(seconds * (kind = 'waited')) AS wait_seconds,
  sum(kind = 'refused') AS refused, sum(kind = 'robots.txt') AS robots_txt, sum(kind = 'backoff') AS backoffs,
  sum(seconds * (kind = 'backoff')) AS backoff_seconds,
  first_five(origin || path) AS examples, min(place) AS place,
  reason = 'local-rule' AND allowed IS 1 AS is_excepted,
  reason = 'exempt' AND coalesce(pattern, nullif(detail, 'its robots.txt allows it')) IS NOT NULL
    AS is_broken,
  reason = 'exempt' AND pattern IS NULL AND detail IS NULL AS is_not_known
FROM request GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;
CREATE INDEX decided_of ON decided(origin);

-- The counts of each origin, and those of all requests under the name ''.
CREATE VIEW counted AS SELECT origin AS name, * FROM decided UNION ALL SELECT '', * FROM decided;
CREATE TABLE counts AS SELECT name AS origin, sum(sent) AS sent,
  sum(sent * (allowed IS 1 AND NOT is_excepted)) AS sent_allowed, sum(sent * is_excepted) AS sent_excepted,
  sum(sent * (reason = 'exempt')) AS sent_exempt, sum(sent * (allowed IS 0)) AS sent_disallowed,
  sum(sent * (reason = 'unchecked')) AS sent_unchecked,
  sum(sent * (is_broken AND judged_at IS NULL)) AS exempt_disallowed,
  sum(sent * (is_broken AND judged_at IS NOT NULL)) AS exempt_disallowed_later,
  sum(sent * is_not_known) AS exempt_not_known, sum(dropped) AS dropped,
  sum(final_url) AS final_url_disallowed,
  sum(delayed) AS delayed, round(sum(delay_seconds), 6) AS delay_seconds,
  sum(waited) AS waited, round(sum(wait_seconds), 6) AS wait_seconds, sum(robots_txt) AS robots_txt,
  sum(backoffs) AS backoffs, round(sum(backoff_seconds), 6) AS backoff_seconds
FROM counted GROUP BY name;
CREATE VIEW dropped AS SELECT name AS origin, json_group_object(reason, number) AS reasons
FROM (SELECT name, reason, sum(dropped) AS number FROM counted WHERE dropped > 0
  GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2) GROUP BY name;
CREATE VIEW refused AS SELECT name AS origin, json_group_object(detail, number) AS statuses
FROM (SELECT name, detail, sum(refused) AS number FROM counted WHERE refused > 0
  GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2) GROUP BY name;
CREATE VIEW each_counts AS SELECT counts.*, coalesce(reasons, '{}') AS "dropped_for [msgspec]",
  coalesce(statuses, '{}') AS "refused_for [msgspec]"
FROM counts LEFT JOIN dropped USING (origin) LEFT JOIN refused USING (origin)
WHERE origin = '' OR origin IN (SELECT origin FROM listed);

-- The origins of the report, the most important ones first.
CREATE TABLE listed AS SELECT origin, host, coalesce(result, 'unknown') AS state,
  row_number() OVER (ORDER BY coalesce(sent_disallowed + final_url_disallowed, 0) = 0,
    coalesce(sent_exempt + sent_excepted, 0) = 0, coalesce(backoffs, 0) = 0,
    origin NOT IN (SELECT origin FROM decided WHERE refused AND detail = '402'),
    coalesce(result, '') != 'unreachable', -coalesce(sent + dropped, 0), origin) AS rank
FROM (SELECT origin, host FROM request WHERE origin IS NOT NULL UNION
  SELECT origin, host FROM fetch UNION SELECT origin, host FROM page UNION
  SELECT origin, host FROM pace)
LEFT JOIN counts USING (origin)
LEFT JOIN (SELECT DISTINCT origin, last_value(result) OVER (PARTITION BY origin ORDER BY at, place
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS result FROM fetch) USING (origin)
ORDER BY rank LIMIT (SELECT max_origins FROM limits);
CREATE UNIQUE INDEX listed_of ON listed(origin);

-- The states of robots.txt files. A state lasts until a fetch finds another one. A 304 says that the
-- file is still the same, so it has the response of the fetch before.
CREATE TABLE fetched AS SELECT *, state IS NOT lag(state) OVER one AS is_new,
  row_number() OVER (ORDER BY origin, at, place) AS number
FROM (SELECT *, json_array(result, effect, sha256, max(response) OVER (PARTITION BY origin, answer))
    AS state
  FROM (SELECT *, count(response) OVER one AS answer
    FROM (SELECT fetch.*, CASE WHEN status IS NOT 304 OR result IS NOT lag(result) OVER one
        THEN json_array(status, url, redirects) END AS response
      FROM fetch JOIN listed USING (origin)
      WINDOW one AS (PARTITION BY origin ORDER BY at, place))
    WINDOW one AS (PARTITION BY origin ORDER BY at, place)))
WINDOW one AS (PARTITION BY origin ORDER BY at, place);
CREATE UNIQUE INDEX fetched_number ON fetched(number);

CREATE TABLE version AS SELECT *,
  row_number() OVER (PARTITION BY origin ORDER BY first DESC) AS position
FROM (SELECT origin, number AS first,
    lead(number, 1, (SELECT max(number) FROM fetched) + 1) OVER (ORDER BY number) - 1 AS last
  FROM fetched WHERE is_new);

CREATE VIEW versions AS SELECT version.origin, found.result, found.effect, found.source,
  found.fetched_at AS first_at, latest.fetched_at AS last_at, found.status, found.url,
  found.redirects AS "redirects [msgspec]", latest.failure, found.sha256,
  (SELECT size FROM file WHERE file.sha256 = found.sha256) AS size, last - first + 1 AS fetches, latest.expires_at
FROM version JOIN limits JOIN fetched AS found ON found.number = first
JOIN fetched AS latest ON latest.number = last
WHERE position <= max_versions ORDER BY first;

CREATE TABLE decided_rank AS SELECT decided.*,
  row_number() OVER (PARTITION BY origin ORDER BY sent + dropped + final_url DESC, place) AS number
FROM decided JOIN listed USING (origin) WHERE reason != '';

CREATE VIEW deciding AS SELECT origin, reason, allowed, sha256, agent,
  CASE WHEN pattern IS NOT NULL THEN
    json_object('allow', allow, 'pattern', pattern, 'line', line) END AS "rule [msgspec]",
  detail, judged_at, sent, dropped, final_url, examples AS "examples [msgspec]"
FROM decided_rank JOIN limits WHERE number <= max_deciding ORDER BY origin, number;

-- The pace that a site asked for last.
CREATE TABLE asked AS SELECT DISTINCT origin, last_value(json_object('records', records,
    'asked', asked, 'applied', applied)) OVER (PARTITION BY origin ORDER BY at, place
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS asked FROM pace;

CREATE VIEW origins AS SELECT origin, host, state,
  coalesce(versions, 0) AS versions_left_out, coalesce(requests, 0) AS deciding_left_out,
  asked.asked AS "pace [msgspec]"
FROM listed JOIN limits
LEFT JOIN (SELECT origin, count(*) AS versions FROM version JOIN limits
  WHERE position > max_versions GROUP BY 1) USING (origin)
LEFT JOIN asked USING (origin)
LEFT JOIN (SELECT origin, sum(sent + dropped + final_url) AS requests
  FROM decided_rank JOIN limits WHERE number > max_deciding GROUP BY 1) USING (origin)
ORDER BY rank;

-- What pages say: directives and uses.
CREATE VIEW statements AS SELECT *
FROM limits JOIN (SELECT *, row_number() OVER (PARTITION BY origin, kind
    ORDER BY responses DESC, name) AS number
  FROM (SELECT origin, kind, name, sum(NOT dropped) AS responses, sum(dropped) AS dropped,
      sum(refused AND NOT dropped) AS refused,
      first_five(nullif(detail, '')) AS "details [msgspec]",
      first_five(CASE WHEN kind != 'usage' OR refused THEN origin || path END) AS "examples [msgspec]"
    FROM page JOIN listed USING (origin) GROUP BY 1, 2, 3))
WHERE number <= max_names ORDER BY origin, kind, number;

-- The gaps between two requests to a host in one run, with the delay that was applied and the one
-- that the last robots.txt before the request asked for. Of a host with a delay, those that count
-- are between requests that had to keep it. A request may have passed the middleware before the
-- delay was known.
CREATE INDEX pace_of ON pace(run, origin, place);
CREATE TABLE passed AS SELECT place, run, host, at, seconds AS applied,
  CASE WHEN origin IN (SELECT origin FROM pace WHERE asked > 0) THEN coalesce((
    SELECT asked FROM pace WHERE pace.run = request.run AND pace.origin = request.origin
    AND pace.place < request.place ORDER BY pace.place DESC LIMIT 1), 0) ELSE 0 END AS asked
FROM request WHERE kind IN ('sent', 'robots.txt') AND host IS NOT NULL;
CREATE TABLE gap AS SELECT *, gap IS NOT NULL
  AND (host NOT IN (SELECT host FROM passed WHERE max(applied, asked) > 0)
    OR delay > 0 AND (before > 0 OR gap >= delay)) AS counts
FROM (SELECT host, asked, applied, max(applied, asked) AS delay,
    round(at - lag(at) OVER one, 6) AS gap, lag(max(applied, asked)) OVER one AS before,
    min(applied, lag(applied) OVER one) AS both_applied, min(asked, lag(asked) OVER one) AS both_asked
  FROM passed WINDOW one AS (PARTITION BY host, run ORDER BY place));
CREATE INDEX gap_of ON gap(host, gap) WHERE counts;

CREATE TABLE host_rank AS SELECT *, row_number() OVER (
  ORDER BY below_applied + below_asked = 0, coalesce(asked, applied) IS NULL, requests DESC, host) AS rank
FROM (SELECT host, count(*) AS requests, sum(counts) AS gaps,
    min(CASE WHEN counts THEN gap END) AS smallest_gap,
    nullif(max(asked), 0) AS asked, min(nullif(applied, 0)) AS applied,
    sum(asked > applied) AS capped, sum(counts AND gap < both_applied) AS below_applied,
    sum(counts AND gap < both_asked) AS below_asked
  FROM gap GROUP BY host);

CREATE VIEW hosts AS SELECT * FROM host_rank JOIN limits WHERE rank <= max_origins ORDER BY rank;

-- The files to which versions and deciding rules refer. The newest ones keep their text.
CREATE TABLE texts AS SELECT sha256, size,
  CASE WHEN sum(length(text)) OVER (ORDER BY place DESC) <= max_files_text THEN text END AS text
FROM file JOIN limits
WHERE sha256 IN (SELECT sha256 FROM versions UNION SELECT sha256 FROM deciding) ORDER BY place;

CREATE VIEW sites AS SELECT (SELECT count(*) FROM counts WHERE origin != '' AND sent > 0)
    AS requested,
  (SELECT count(DISTINCT origin) FROM pace WHERE records != '') AS asked_pace,
  (SELECT coalesce(json_group_object(detail, number), '{}') FROM (SELECT detail,
    count(DISTINCT origin) AS number FROM decided WHERE refused > 0 GROUP BY 1))
    AS "refused [msgspec]";

-- The requests of each part of the crawl. A part is a whole number of minutes.
CREATE VIEW timeline AS WITH RECURSIVE extent AS (SELECT min(at) AS first, 60 * (1 + cast((max(at) - min(at)) / 7200 AS integer)) AS length,
    max(at) AS last FROM passed),
  part AS (SELECT 0 AS number FROM extent WHERE first IS NOT NULL
    UNION ALL SELECT number + 1 FROM part, extent WHERE first + (number + 1) * length <= last),
  requests AS (SELECT cast((at - first) / length AS integer) AS number, count(*) AS sent
    FROM passed, extent GROUP BY 1),
  pause AS (SELECT at, at - lag(at) OVER (ORDER BY at) AS gap FROM passed)
SELECT first AS started_at, length AS seconds,
  (SELECT json_group_array(coalesce(sent, 0)) FROM (SELECT * FROM part ORDER BY number)
    LEFT JOIN requests USING (number)) AS "requests [msgspec]",
  coalesce((SELECT round(max(gap), 6) FROM pause), 0) AS longest_gap,
  (SELECT at FROM pause WHERE gap IS NOT NULL ORDER BY gap DESC, at LIMIT 1) AS gap_ended_at
FROM extent;

CREATE VIEW left_out AS SELECT
  (SELECT coalesce(sum(sent + dropped), 0) FROM counts WHERE origin != ''
    AND origin NOT IN (SELECT origin FROM listed)) AS origins,
  (SELECT coalesce(sum(requests), 0) FROM host_rank WHERE rank > max_origins) AS hosts,
  (SELECT coalesce(sum(deciding_left_out), 0) FROM origins) AS deciding,
  (SELECT count(*) FROM texts WHERE text IS NULL) AS files
FROM limits;
