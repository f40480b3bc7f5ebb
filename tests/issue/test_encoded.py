"""A secret goes in whatever way it is written: escapes of JSON, of addresses, base64, and these in each other."""
import base64
import json
import urllib.parse

import pytest

from issue_cli import Made, programs
from secrets_made import ALNUM, HEX, made, token


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


def in_url_base64(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def escaped(text, letters=2, form="\\u{:04x}"):
    """Every second letter as an escape."""
    return "".join(form.format(ord(c)) if n % letters == 1 else c for n, c in enumerate(text))


def percent(text):
    return escaped(text, 2, "%{:02X}")


def secret(name):
    return made(16, ALNUM, f"encoded {name}")


# What stands in the text, and the parts of it that must go.
WRITTEN = {
    "a name with escapes": (f'"pass\\u0077ord": "{secret(1)}"', secret(1)),
    "a name of escapes": (f'"{escaped("api_key", 1 + 1)}": "{secret(2)}"', secret(2)),
    "a value with escapes": (f'"password": "{escaped(secret(3))}"', escaped(secret(3))),
    "a token with escapes": (f'"note": "{escaped(token("ghp_", 38))}"', escaped(token("ghp_", 38))),
    "a token with hexadecimal escapes": (f'x = b"{escaped(token("ghp_", 39), 2, chr(92) + "x{:02x}")}"', escaped(token("ghp_", 39), 2, chr(92) + "x{:02x}")),
    "an address with escaped slashes": (f'"db": "postgres:\\/\\/me:{secret(4)}@db.example\\/runs"', secret(4)),
    "a token in percents": (f"see {percent(token('hf_', 36))}", percent(token("hf_", 36))),
    "a token in two layers of percents": (f"see {percent(token('hf_', 37)).replace('%', '%25')}", percent(token("hf_", 37)).replace("%", "%25")),
    "a name and value in percents": (f"next=%2Fx%3Fpassword%3D{secret(5)}", secret(5)),
    "a header in percents": (f"h=Authorization%3A%20Bearer%20{secret(6)}", secret(6)),
    "JSON in percents": (urllib.parse.quote(json.dumps({"api_key": secret(7)})), secret(7)),
    "base64": (f"x {in_base64('password=' + secret(8))} y", in_base64("password=" + secret(8))),
    "base64 of a token": (f"x {in_base64(token('npm_', 36))} y", in_base64(token("npm_", 36)).rstrip("=")),
    "two layers of base64": (f"x {in_base64(in_base64('password=' + secret(9)))} y", in_base64(in_base64("password=" + secret(9))).rstrip("=")),
    "three layers of base64": (f"x {in_base64(in_base64(in_base64(token('npm_', 37))))} y", in_base64(in_base64(in_base64(token("npm_", 37)))).rstrip("=")),
    "two layers of the base64 of addresses": (f"--x={in_url_base64(in_url_base64(json.dumps({'api_key': secret(10)})))}", in_url_base64(in_url_base64(json.dumps({"api_key": secret(10)})))),
    "escapes in base64": (f"x {in_base64(chr(34) + 'pass' + chr(92) + 'u0077ord' + chr(34) + ': ' + chr(34) + secret(11) + chr(34))} y",
                          in_base64(chr(34) + "pass" + chr(92) + "u0077ord" + chr(34) + ": " + chr(34) + secret(11) + chr(34)).rstrip("=")),
    "base64 in percents": (f"x={urllib.parse.quote(in_base64('password=' + secret(12)))}", in_base64("password=" + secret(12)).rstrip("=")),
}

ODD = "p@ss/w0rd" + '"' + "\\ +" + made(6, ALNUM, "odd")  # of the environment: known, and written in other ways
KNOWN = {
    "as it is": ODD, "in an address": urllib.parse.quote(ODD, safe=""), "in JSON": json.dumps(ODD)[1:-1], "in base64": in_base64(ODD).rstrip("="),
}

NEAR = [
    "100%25 of 4096", "progress: 50%, 12%ab", "path%2Fto%2Ffile1234abcd", "\\u003cpad\\u003e", '"pad_tok\\u0065n": "abc123def456"', "C:\\x41\\users",
    '"tokenizer\\u0031": "gpt2abc123"', in_base64(in_base64("the step took 12 seconds and 34 milliseconds")), in_base64("num_tokens=131072 and more"),
    in_base64(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 3}})), "%(asctime)s %(levelname)s", "printf %08x%20d", made(64, HEX, "digest"),
    urllib.parse.quote("https://example.com/a?tokens=12&key=x"), "\\/\\/ a comment \\/\\/",
]


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoded")
    lines = [text for text, _ in WRITTEN.values()] + [f"see {one} there" for one in KNOWN.values()] + NEAR
    (folder / "ds_config.json").write_text("\n\n".join(lines) + "\n")
    return Made("--config", folder / "ds_config.json", cwd=folder, path=programs(folder / "bin", "tar", "zstd"), ODD_PASSWORD=ODD)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_secret_goes_as_it_is_written(cleaned, name):
    assert WRITTEN[name][1] not in cleaned.everything()


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_secret_goes_as_others_write_it(cleaned, name):
    assert f"see {KNOWN[name]} there" not in cleaned.everything()
    assert KNOWN[name] not in cleaned.everything()


@pytest.mark.parametrize("text", NEAR)
def test_what_holds_no_secret_stays(cleaned, text):
    assert text in cleaned.files["ds_config.json"].rstrip("\n").split("\n\n")
