"""The explanation of a verdict is that of the parser, for many files."""

from __future__ import annotations

from scrapy_rep.commands.agent_option import of_user_agent
from scrapy_rep.commands.explain import explain
from scrapy_rep.commands.policy import of_file
from scrapy_rep.commands.targets import target_of
from testing.corpus import load

from .conftest import validate


def test_the_rules_of_many_files() -> None:
    files, rows, _ = load(None, files=150, questions=6)
    policies = {name: of_file(name, body) for name, body in files.items()}
    explained = 0
    for row in rows:
        robots = policies[row.file].robots
        assert robots is not None
        policy, agent, target = policies[row.file], of_user_agent(row.agent), target_of(row.url)
        verdict = policy.verdict(target.url, agent.tokens)
        record = explain(target, agent, policy, verdict, strict=False)
        assert (record["allowed"], record["group"]) == (verdict.allowed, agent.group(robots))
        assert verdict.agent in (None, record["group"])
        rule = record["rule"]
        assert (rule and rule["line"]) == (verdict.rule and verdict.rule.line)
        if rule is None:
            assert record["other_rules"] == []
            continue
        explained += 1
        validate(record, "check")
        assert rule["line"] in [line["line"] for line in record["context"]]
        for other in record["other_rules"]:
            assert other["length"] <= rule["length"]
            assert (other["why"] == "shorter") == (other["length"] < rule["length"]) or (
                other["why"] == "repeated"
            )
            assert other["why"] != "overruled"
            if other["length"] == rule["length"] and other["allow"] != rule["allow"]:
                assert (rule["allow"], other["why"]) == (True, "allow-wins")
    assert explained > 100
