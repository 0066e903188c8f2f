"""Settings: who wins, what is refused and how it is said, and that no secret shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planrun.core.plan import Limits
from planrun.endpoint import DEFAULT_BASE_URL, normalise_base_url, shown
from planrun.errors import ConfigError
from planrun.planfile import parse
from planrun.settings import Flags, Hook, ModelOverride, Settings, resolve

CASES = Path(__file__).parent / "cases"
PLAN = parse(
    "model: of-plan\ncontext: clear\nwindow: 1000\nlimits: {time: 2h, turns: 7}\nsteps: [{id: a, prompt: x}]", "p.yaml", {}
).plan


class Place:
    """A project folder and a user's configuration folder."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "project"
        self.project = self.cwd / ".thclaws" / "settings.json"
        self.user = root / "config" / "thclaws" / "settings.json"
        for path in (self.project, self.user):
            path.parent.mkdir(parents=True)
        self.environ = {"XDG_CONFIG_HOME": str(root / "config")}

    def resolve(self, flags: Flags = Flags(), *, plan: bool = False, **environ: str) -> Settings:
        return resolve(self.cwd, flags, {**self.environ, **environ}, PLAN if plan else None)

    def refusal(self, project: object, flags: Flags = Flags(), **environ: str) -> str:
        self.project.write_text(project if isinstance(project, str) else json.dumps(project))
        with pytest.raises(ConfigError) as caught:
            self.resolve(flags, plan=False, **environ)
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_defaults(place: Place) -> None:
    found = place.resolve()
    assert (found.model, found.base_url, found.context, found.api_key) == (None, DEFAULT_BASE_URL, "compact", None)
    assert found.session_dir == place.cwd / ".thclaws" / "sessions"
    assert found.limits == Limits()
    assert found.origins == {}


def test_each_source_beats_the_next(place: Place) -> None:
    place.user.write_text(json.dumps({"model": "of-user", "summaryModel": "s", "limits": {"tokens": 1, "turns": 1}}))
    assert (place.resolve().model, place.resolve().origins["model"]) == ("of-user", str(place.user))
    place.project.write_text(json.dumps({"model": "of-project", "limits": {"turns": 2}, "planContextStrategy": "keep"}))
    found = place.resolve()
    assert (found.model, found.origins["model"], found.summary_model) == ("of-project", str(place.project), "s")
    assert (found.context, found.limits) == ("keep", Limits(tokens=1, turns=2))
    found = place.resolve(plan=True)
    assert (found.model, found.origins["model"]) == ("of-plan", "plan")
    assert (found.context, found.window, found.limits) == ("clear", 1000, Limits(tokens=1, time=7200.0, turns=7))
    found = place.resolve(
        plan=True, PLANRUN_MODEL="of-env", PLANRUN_MAX_TIME="90m", PLANRUN_CONTEXT="summary", PLANRUN_WINDOW="2_000"
    )
    assert (found.model, found.origins["model"]) == ("of-env", "environment PLANRUN_MODEL")
    assert (found.context, found.window, found.limits.time) == ("summary", 2000, 5400.0)
    flags = Flags(
        model="of-flag", max_time="10s", max_cost=1, max_tokens=5, max_turns=6, context="keep", window=9, session_dir="logs"
    )
    found = place.resolve(flags, plan=True, PLANRUN_MODEL="of-env")
    assert (found.model, found.origins["model"], found.origins["limits.time"]) == ("of-flag", "flag --model", "flag --max-time")
    assert (found.limits, found.session_dir) == (Limits(1.0, 5, 10.0, 6), place.cwd / "logs")


def test_empty_environment_variables_are_not_set(place: Place) -> None:
    found = place.resolve(PLANRUN_MODEL="", OPENAI_BASE_URL="", OPENAI_API_KEY=" ", PLANRUN_SESSION_DIR="")
    assert (found.model, found.base_url, found.api_key, found.origins) == (None, DEFAULT_BASE_URL, None, {})


def test_endpoint_sources(place: Place) -> None:
    place.project.write_text(json.dumps({"baseUrl": "http://file/v1"}))
    assert place.resolve().base_url == "http://file/v1"
    found = place.resolve(OPENAI_BASE_URL="http://openai/v1/")
    assert (found.base_url, found.origins["base_url"]) == ("http://openai/v1", "environment OPENAI_BASE_URL")
    assert place.resolve(OPENAI_BASE_URL="http://a", PLANRUN_BASE_URL="http://b").base_url == "http://b"
    found = place.resolve(Flags(base_url="http://flag/v1/chat/completions"), PLANRUN_BASE_URL="http://b")
    assert found.base_url == "http://flag/v1"
    assert "/chat/completions" in found.warnings[0]


def test_tables(place: Place) -> None:
    place.user.write_text(
        json.dumps(
            {
                "permissions": {"deny": ["Bash(rm*)"], "allow": ["Read"]},
                "modelOverrides": {"m": {"context": 1}, "u": {"context": 2}},
            }
        )
    )
    place.project.write_text(
        json.dumps(
            {
                "modelOverrides": {
                    "m": {"context": 8000, "maxOutput": 100, "inputPrice": 1, "outputPrice": 2.5, "cachedPrice": 0}
                },
                "permissions": {"allow": ["Bash(git status*)"]},
                "hooks": {
                    "pre_compact": "notify",
                    "step_end": ["a", {"command": "b", "timeout": "2m", "failClosed": True}],
                    "UserPromptSubmit": [{"hooks": [{"type": "command"}]}],
                },
                "compaction": {"summarizeTokenPercent": 60, "ofThclaws": True},
                "mcpServers": {"web": {"command": "x", "env": {"KEY": "hidden-value"}}},
                "theme": "dark",
            }
        )
    )
    found = place.resolve()
    assert found.model_overrides == {"m": ModelOverride(8000, 100, 1.0, 2.5, 0.0), "u": ModelOverride(2)}
    assert found.permissions.allow == ("Bash(git status*)", "Read")
    assert found.permissions.deny == ("Bash(rm*)",)
    assert found.hooks == {"pre_compact": (Hook("notify"),), "step_end": (Hook("a"), Hook("b", 120.0, True))}
    assert (found.compaction.summarize_token_percent, found.compaction.min_reclaim_percent) == (60.0, 5.0)
    assert found.mcp_servers == {"web": {"command": "x", "env": {"KEY": "hidden-value"}}}
    assert "mcpServers" in found.warnings[0]


def test_no_secret_shows(place: Place) -> None:
    place.project.write_text(json.dumps({"mcpServers": {"web": {"env": {"KEY": "hidden-value"}}}}))
    found = place.resolve(OPENAI_API_KEY="planrun-test-KEY\n", OPENAI_BASE_URL="http://user:pass-word@host/v1")
    assert found.api_key == "planrun-test-KEY"
    for text in (repr(found), json.dumps(found.public()), repr(found.describe())):
        assert not any(secret in text for secret in ("planrun-test-KEY", "pass-word", "hidden-value"))
    assert ("api_key", "set", "environment OPENAI_API_KEY") in found.describe()
    assert ("base_url", "http://***@host/v1", "environment OPENAI_BASE_URL") in found.describe()
    with pytest.raises(ConfigError) as caught:
        place.resolve(OPENAI_API_KEY="two words-secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", ":1:2: not JSON"),
        ("", ":1:1: the file is empty: write {} or delete it"),
        ("[]", "expected an object"),
        ('{"a": 1,\n "a": 2}', ":2:2: the key 'a' appears twice"),
        ('{"limits": {\n"time": NaN}}', ":2:9: not JSON: NaN is no number"),
        ("[" * 100_000, ":1:65: nested more than 64 deep"),
        (f'{{"a": {"[" * 70}{"]" * 70}}}', "nested more than 64 deep"),
        (f'{{"a":\n{"9" * 5_000}}}', ":2:1: a number of more than 1,000 digits"),
        (f'{{"a": [{"1, " * 300_000}1]}}', "more than 5,000 keys and values"),
        ('{"a": "x",\n"b": "\\ud83d"}', ":2:6: half of a character"),
        ('{"model": "a\\u0000"}', ":1:2: model: expected one line of UTF-8 without control characters, found 'a\\x00'"),
        ('{"model": " "}', "model: expected a text, found an empty one"),
        ('{"limits": {"tokens": 1e400}}', "limits.tokens: expected an integer, found inf"),
        ('{"hooks": {"step_end": "a\\u0000b"}}', "hooks.step_end.0.command: expected a command without NUL characters"),
        ('{"permissions": []}', "permissions: expected an object, {...}, found a list"),
        ('{"permissions": {"allow": "Bash"}}', "permissions.allow: expected a list, [...], found 'Bash'"),
        ('{\n "Model": "x"}', ":2:2: unknown key 'Model': did you mean model?"),
        ('{"base_url": "x"}', "did you mean baseUrl?"),
        ('{"planContextStrategi": "x"}', "did you mean planContextStrategy?"),
        ('{"permissions": {"alow": []}}', ":1:18: unknown key 'alow': did you mean allow?"),
        ('{"hooks": {"preCompact": "x"}}', "did you mean pre_compact?"),
        ('{"compaction": {"summariseTokenPercent": 5}}', "did you mean summarizeTokenPercent?"),
        ('{"limits": {"costs": 1}}', ":1:13: unknown key limits.costs"),
        ('{"modelOverrides": {"m": {"price": 1}}}', "unknown key modelOverrides.m.price"),
        ('{"planContextStrategy": "compat"}', "found 'compat' (did you mean compact?)"),
        ('{"model": 3}', "model: expected a text, found 3"),
        ('{"model": ""}', "model: expected"),
        ('{"limits": {"tokens": "5"}}', "limits.tokens: expected an integer, found '5'"),
        ('{"limits": {"cost_usd": 0}}', "limits.cost_usd: expected a number greater than 0, found 0"),
        ('{"limits": {"time": "soon"}}', "limits.time: expected a time such as"),
        ('{"compaction": {"summarizeTokenPercent": 175}}', "found 175"),
        ('{"permissions": {"deny": ["rm -rf"]}}', "permissions.deny.0: expected a rule such as"),
        ('{"hooks": {"step_end": {"comand": "x"}}}', "hooks.step_end.0"),
        ('{"modelOverrides": {"m": {"inputPrice": -1}}}', "found -1"),
        ('{"baseUrl": "localhost:1/v1"}', ":1:2: baseUrl: base URL localhost:1/v1: the scheme is missing"),
    ],
)
def test_refused_files(place: Place, text: str, part: str) -> None:
    message = place.refusal(text)
    assert message.startswith(str(place.project)) and all(line.isprintable() for line in message.split("\n"))
    assert part in message


def test_all_faults_of_a_file_at_once(place: Place) -> None:
    assert len(place.refusal('{"Model": 1, "limits": {"tokens": 0}, "hooks": 3}').splitlines()) == 3
    many = place.refusal({"limits": {f"k{i}": 1 for i in range(4_000)}}).splitlines()
    assert len(many) == 101 and many[-1].endswith("there are more faults than these 100")


@pytest.mark.parametrize("folder", ["/dev/null", "/nonexistent", "settings.json"])
def test_a_user_without_a_folder_for_settings_has_none(place: Place, folder: str) -> None:
    place.user.write_text("{}")
    assert place.resolve(XDG_CONFIG_HOME=str(place.user.parent / folder)).origins == {}


@pytest.mark.parametrize(
    ("target", "part"),
    [("nowhere", "is a link to a file that does not exist"), ("settings.json", "Too many levels of symbolic links")],
)
def test_a_link_that_leads_nowhere_is_no_absent_file(place: Place, target: str, part: str) -> None:
    for file in (place.project, place.user):
        file.symlink_to(target)
        with pytest.raises(ConfigError) as caught:
            place.resolve()
        assert str(caught.value).startswith(str(file)) and part in str(caught.value)
        file.unlink()


def test_a_file_of_many_keys_is_refused_at_once(place: Place) -> None:
    keys = ", ".join(f'"modle{number}": 1' for number in range(50_000))
    assert "more than 5,000 keys and values" in place.refusal(f"{{{keys}}}")


def test_files_that_cannot_be_read(place: Place) -> None:
    place.project.write_bytes(b'{"model": "\xff"}')
    with pytest.raises(ConfigError, match="settings.json:1:12: not UTF-8: byte 0xff at byte offset 11"):
        place.resolve()
    place.project.unlink()
    place.project.mkdir()
    with pytest.raises(ConfigError, match="is a directory"):
        place.resolve()


@pytest.mark.parametrize(
    ("flags", "environ", "part"),
    [
        (Flags(window=0), {}, "flag --window: expected at least 1"),
        (Flags(max_cost=-1), {}, "flag --max-cost: expected more than 0"),
        (Flags(context="kep"), {}, "flag --context"),
        (Flags(base_url=""), {}, "flag --base-url: the base URL is empty"),
        (Flags(), {"PLANRUN_MAX_TIME": "x"}, "environment PLANRUN_MAX_TIME: expected a time"),
        (Flags(), {"PLANRUN_MAX_TOKENS": "1.5"}, "environment PLANRUN_MAX_TOKENS: expected an integer"),
        (Flags(), {"OPENAI_BASE_URL": "host/v1"}, "environment OPENAI_BASE_URL: base URL host/v1: the scheme is missing"),
    ],
)
def test_refused_values(place: Place, flags: Flags, environ: dict[str, str], part: str) -> None:
    assert part in place.refusal({}, flags, **environ)


@pytest.mark.parametrize("row", json.loads((CASES / "CFG-01.urls.json").read_text()), ids=lambda row: str(row["base_url"]))
def test_cfg_01_addresses(row: dict[str, str]) -> None:
    if "error" in row["want"]:
        with pytest.raises(ConfigError):
            normalise_base_url(row["base_url"])
        return
    url, warning = normalise_base_url(row["base_url"])
    assert not url.endswith("/")
    assert (warning is not None) == ("warning" in row["want"])
    if row["want"].startswith("/"):
        assert url + "/chat/completions" == "http://127.0.0.1:8001/v1/chat/completions"


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("  ", "empty"),
        ("ftp://x/v1", "must be http or https"),
        ("http:///v1", "host is missing"),
        ("http://a:b/v1", "ort"),
        ("http://a/v1?x=1", "nothing may follow"),
        ("http://a/ v1", "blank"),
        ("user:pass-word@host/v1", "scheme is missing"),
        ("ftp://user:pass-word@host/v1", "http"),
    ],
)
def test_refused_addresses(url: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalise_base_url(url)
    assert part in str(caught.value)
    assert "pass-word" not in str(caught.value)


def test_shown() -> None:
    assert shown("https://u:p@h/v1") == "https://***@h/v1"
    assert shown("https://h/v1") == "https://h/v1"
