-- The figures of a survey: a view for each.
-- rows: one row for each site of this survey ('now') and of the one it is compared with ('before').
-- crawlers: the purposes of the well-known crawlers, by product token in lower case.

-- The agents that files name, and what they disallow for each.
CREATE VIEW named AS
SELECT survey, id, unnest(list_distinct(agents)) AS agent, extent FROM (
    SELECT survey, rowid AS id, everything AS agents, 'everything' AS extent FROM rows
    UNION ALL SELECT survey, rowid, something, 'something' FROM rows
    UNION ALL SELECT survey, rowid, nothing, 'nothing' FROM rows
);

-- How many sites, or files, have something. A file counts once for each name.
CREATE VIEW counts AS
SELECT survey, measure, name, count(*) AS number, number / any_value(whole) AS share
FROM (
    SELECT survey, 'result' AS measure, result AS name, 'sites' AS unit FROM rows
    UNION ALL SELECT survey, 'status', status::VARCHAR, 'sites' FROM rows WHERE status IS NOT NULL
    UNION ALL SELECT survey, 'feature', unnest(list_distinct(features)), 'files' FROM rows
    UNION ALL SELECT survey, 'feature', 'no group', 'files' FROM rows WHERE groups = 0
    UNION ALL SELECT survey, 'feature', 'more than 500 KiB', 'files' FROM rows WHERE size > 512000
    UNION ALL SELECT survey, 'feature', 'findings of lint', 'files' FROM rows WHERE len(findings) > 0
    UNION ALL SELECT survey, 'feature', extent || ' disallowed for *', 'files' FROM named WHERE agent = '*'
    UNION ALL SELECT DISTINCT ON (id) survey, 'feature', 'group for a named agent', 'files'
    FROM named WHERE agent <> '*'
    UNION ALL SELECT survey, 'finding', unnest(list_distinct(findings)), 'files' FROM rows
    UNION ALL SELECT survey, 'preference', unnest(list_distinct(preferences)), 'files' FROM rows
    UNION ALL SELECT DISTINCT ON (id, agent) survey, 'agent', agent, 'files' FROM named
    UNION ALL SELECT DISTINCT ON (id, purpose, extent)
        survey, 'purpose', purpose || ': ' || extent, 'files'
    FROM named JOIN crawlers USING (agent)
)
JOIN (
    SELECT survey, 'sites' AS unit, count(*) AS whole FROM rows GROUP BY survey
    UNION ALL SELECT survey, 'files', count(size) FROM rows GROUP BY survey
) USING (survey, unit)
GROUP BY survey, measure, name;

CREATE MACRO counted(which) AS TABLE
SELECT name, number, share FROM counts WHERE survey = 'now' AND measure = which;

CREATE VIEW results AS FROM counted('result');
CREATE VIEW statuses AS FROM counted('status');
CREATE VIEW features AS FROM counted('feature');
CREATE VIEW preferences AS FROM counted('preference');
CREATE VIEW findings AS FROM counted('finding');

CREATE VIEW numbers AS
SELECT
    name, quantile_disc(value, 0.1) AS p10, quantile_disc(value, 0.25) AS p25,
    quantile_disc(value, 0.5) AS median, quantile_disc(value, 0.75) AS p75,
    quantile_disc(value, 0.9) AS p90, quantile_disc(value, 0.99) AS p99, max(value) AS largest
FROM (
    SELECT name, value::DOUBLE AS value FROM (
        UNPIVOT (
            SELECT *, CASE WHEN size IS NOT NULL THEN len(everything || something || nothing) END AS agents
            FROM rows WHERE survey = 'now'
        ) ON size, groups, agents, rules, sitemaps
        INTO NAME name VALUE value
    )
    UNION ALL SELECT 'crawl_delay', unnest(crawl_delays) FROM rows WHERE survey = 'now'
)
GROUP BY name;

-- By what they disallow: all agents, those of AI, and those with each purpose.
CREATE VIEW extents AS
SELECT
    kind, name, count(DISTINCT id) AS files,
    files / (SELECT count(size) FROM rows WHERE survey = 'now') AS share,
    count(DISTINCT id) FILTER (extent = 'everything') AS everything,
    count(DISTINCT id) FILTER (extent = 'something') AS something,
    count(DISTINCT id) FILTER (extent = 'nothing') AS nothing
FROM (
    SELECT 'agent' AS kind, agent AS name, id, extent FROM named WHERE survey = 'now'
    UNION ALL SELECT 'purpose', purpose, id, extent FROM named JOIN crawlers USING (agent)
    WHERE survey = 'now'
)
GROUP BY kind, name;

CREATE VIEW agents AS SELECT * EXCLUDE kind FROM extents WHERE kind = 'agent';
CREATE VIEW purposes AS SELECT * EXCLUDE kind FROM extents WHERE kind = 'purpose';
CREATE VIEW ai_agents AS FROM agents
WHERE name IN (SELECT agent FROM crawlers WHERE purpose IN ('ai-training', 'ai-use'));

CREATE VIEW differences AS
SELECT
    measure || ' ' || name AS name, round(coalesce(old.share, 0), 6) AS before,
    round(coalesce(new.share, 0), 6) AS now,
    round(coalesce(new.share, 0) - coalesce(old.share, 0), 6) AS change
FROM (FROM counts WHERE survey = 'now') AS new
FULL JOIN (FROM counts WHERE survey = 'before') AS old USING (measure, name)
WHERE change <> 0;
