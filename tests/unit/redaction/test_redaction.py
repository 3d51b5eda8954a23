"""Secrets in text: what is one, what is none, and what stands in its place.

Each secret-looking text here is put together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json

import pytest

from commonplace.redaction import KINDS, Secret, cleaned_json, find_secrets, redact
from commonplace.redaction.patterns import VENDORS

LOWER = "q7x2m9vbn4k8c1zpwd5hj3rt6yfgs0ae"
MIXED = "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEaXoKi"
HEX = "9f86d081884c7d659a2feaa0c55ad015"
DASHES = "-" * 5
LINES = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 3)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _block(name: str, body: str = LINES, end: bool = True) -> str:
    closing = f"\n{DASHES}END {name}{DASHES}" if end else ""
    return f"{DASHES}BEGIN {name}{DASHES}\n{body}{closing}"


AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY"
WEB_TOKEN = ".".join([_part({"alg": "HS256", "typ": "JWT"}), _part({"sub": "1234567890"}), MIXED + "_-"])
GITHUB = "ghp" + "_" + MIXED[:36]
BOT = base64.b64encode(b"123456789012345678").decode() + "." + "Xa1Bc2." + MIXED[:27]
AZURE = base64.b64encode(bytes(range(64))).decode()

# kind, text before, secret, text after
SECRETS = [
    ("aws access key", "id ", AWS_ID, "."),
    ("aws access key", '"', "ASIA" + "1234567890ABCDEF", '"'),
    ("aws secret key", "aws_secret_access_key = ", AWS_SECRET, "\n"),
    ("aws secret key", '"SecretAccessKey": "', AWS_SECRET, '",'),
    ("aws secret key", "our AWS credentials end in ", MIXED, " I think"),
    ("gcp key", "key=", "AIza" + "SyD" + MIXED[:32], "&v=3"),
    ("gcp key", "client_secret: ", "GOCSPX-" + MIXED[:28], ""),
    (
        "private key",
        '{"type": "service_account", "private_key": "',
        _block("PRIVATE KEY").replace("\n", "\\n"),
        '\\n"}',
    ),
    ("private key", "", _block("RSA PRIVATE KEY"), "\nnext"),
    ("private key", "", _block("OPENSSH PRIVATE KEY"), "\r\nnext"),
    ("private key", "", _block("EC PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,01\n\n" + LINES), ""),
    ("private key", "", _block("PGP PRIVATE KEY BLOCK", "Version: 1\n\n" + LINES + "\n=aB1c"), ""),
    ("private key", "", _block("PRIVATE KEY", LINES.replace("\n", "\n    > ")), ""),
    ("private key", "cut: ", _block("RSA PRIVATE KEY", end=False), "\nThe rest was lost."),
    ("private key", "env KEY='", _block("PRIVATE KEY").replace("\n", " "), "'"),
    ("private key", "", "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE", ""),
    ("azure key", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", AZURE, ";EndpointSuffix=core"),
    ("azure key", "Endpoint=sb://b.example.net/;SharedAccessKey=", AZURE[:43] + "=", ""),
    ("azure key", "https://a.example.net/c?sv=2022&sig=", "a1b2C3d4" * 5 + "%3D", "&se=2030"),
    ("azure key", "secret ", "abc8Q~" + MIXED[:34], "\n"),
    ("github token", "use ", GITHUB, " for it"),
    ("github token", "", "gho_" + MIXED[:36], ""),
    ("github token", "", "ghu_" + MIXED[:36], ""),
    ("github token", "(", "ghs_" + MIXED[:36], ")"),
    ("github token", "", "ghr_" + MIXED + MIXED[:36], ""),
    ("github token", "", "github_pat_" + MIXED[:22] + "_" + MIXED + MIXED[:19], ""),
    ("gitlab token", "PRIVATE-TOKEN: ", "glpat-" + MIXED[:20], ""),
    ("gitlab token", "", "glrt-" + MIXED[:20], ""),
    ("slack token", "", "xoxb-" + "123456789012-123456789012-" + MIXED[:24], ""),
    ("slack token", "", "xoxp-" + "1234567890-" + LOWER, ""),
    ("slack token", "", "xapp-" + "1-A012345-" + LOWER, ""),
    ("slack webhook", "https://hooks.slack.com/services/", "T01ABCDEF/B01ABCDEF/" + MIXED[:24], "\n"),
    ("stripe key", "", "sk_live_" + MIXED[:24], ""),
    ("stripe key", "", "rk_test_" + MIXED[:24], ""),
    ("stripe key", "", "whsec_" + MIXED[:32], ""),
    ("anthropic key", "", "sk-ant-" + "api03-" + MIXED + MIXED + "-" + MIXED[:10] + "AA", ""),
    ("openai key", "", "sk-" + MIXED[:20] + "T3BlbkFJ" + MIXED[:20], ""),
    ("openai key", "", "sk-proj-" + MIXED + "_" + MIXED, ""),
    ("openai key", "", "sk-" + HEX, ""),
    ("hugging face token", "", "hf_" + "abcdefghijKLMNOPQRSTuvwxyzABCDefgh", ""),
    ("npm token", "//registry.npmjs.org/:_authToken=", "npm_" + MIXED[:36], ""),
    ("pypi token", "password = ", "pypi-AgEIcHlwaS5vcmc" + MIXED * 2, ""),
    ("sendgrid key", "", "SG." + MIXED[:22] + "." + (MIXED + "abc"), ""),
    ("twilio key", "", "SK" + HEX, ""),
    ("telegram token", "bot123456789:", "AA" + MIXED[:33], ""),
    ("discord token", "", BOT, ""),
    ("discord token", "https://discord.com/api/webhooks/", "123456789012345678/" + MIXED + MIXED[:28], ""),
    ("json web token", "cookie: ", WEB_TOKEN, ";"),
    ("json web token", "", _part({"alg": "none"}) + "." + _part({"sub": "ada"}) + ".", ""),
    ("payment card", "card ", "4111 1111" + " 1111 1111", " 12/27"),
    ("payment card", "", "5555-5555" + "-5555-4444", "."),
    ("payment card", "pan=", "378282" + "246310005", ""),
    ("payment card", "", "3782 822463" + " 10005", ""),
    ("payment card", "visa ", "4222222" + "222222", ""),
    ("payment card", "a,", "6011111" + "111111117", ",12/27"),
    ("payment card", "", "30569309" + "025904", ""),
    ("payment card", "", "22230031" + "22003222", ""),
    ("payment card", "", "6304000000" + "000000", ""),
    ("password in a url", "postgres://app:", "s3cr" + "et", "@db.example.com:5432/app"),
    ("password in a url", "redis://:", "hunter" + "2", "@localhost"),
    ("password in a url", "see https://ada:", "p%40ss" + "word", "@example.com/a."),
    ("authorization header", "Authorization: Bearer ", "abc123" + "def456", "\n"),
    ("authorization header", '-H "authorization: Basic ', base64.b64encode(b"ada:lovelace").decode(), '"'),
    ("authorization header", '{"Authorization": "Token ', HEX, '"}'),
    ("authorization header", "send bearer ", LOWER, " with it"),
    ("password", 'password = "', "hunter" + "2", '"'),
    ("password", "DB_PASSWORD=", "tr0ub4" + "dor", "\n"),
    ("password", "password: '", "Correct!" + "Horse", "'"),
    ("password", "My Netflix password is ", "Tr0ub4dor" + "&3", "."),
    ("password", '"dbPassword": "', "xK9#mP" + "2$vL", '"'),
    ("password", "Server=a;User Id=b;Password=", "s3cr3t" + "pw", ";Encrypt=true"),
    ("password", "**Password**: `", "blue7" + "Kite", "`"),
    ("password", 'password: str = "', "n0t4g" + "uess", '"'),
    ("secret value", "API_KEY=", HEX, "\n"),
    ("secret value", "https://example.com/a?api_key=", HEX, "&page=2"),
    ("secret value", 'client_secret: "', LOWER, '"'),
    ("secret value", 'os.environ["AUTH_TOKEN"] = "', LOWER, '"'),
    ("secret value", "const apiKey = '", MIXED[:24], "';"),
    ("secret value", "the API key is ", LOWER, "."),
]

QUOTED = [
    ("secret value", 'curl -H "X-Api-Key: ', LOWER, '" https://example.com'),
    ("secret value", "curl -H 'X-Auth-Token: ", LOWER, "'"),
    ("password", '- "POSTGRES_PASSWORD=', "tr0ub4" + "dor", '"\n'),
    ("password", '"Server=db;User Id=sa;Password=', "s3cr3t" + "pw", '"'),
    ("password", "docker run -e 'DB_PASSWORD=", "tr0ub4" + "dor", "' postgres"),
    ("secret value", 'ENV ["API_KEY=', HEX, '"]'),
    ("secret value", "Run `export AUTH_TOKEN=", LOWER, "` first"),
    ("secret value", r'"{\"token\": \"', LOWER, r'\"}"'),
    ("secret value", r'"{\\\"api_key\\\": \\\"', LOWER, r'\\\"}"'),
    ("secret value", r'"run": "export API_KEY=', LOWER, r'\nmake"'),
    ("password", r'"password=', "tr0ub4" + "dor", r'\""'),
    ("password", "'password: ''", "tr0ub4" + "dor", "'''"),
    ("password", "\"Password: '", "tr0ub4" + "dor", "'\""),
    ("password", '"""password=', "tr0ub4" + "dor", '"""'),
    ("secret value", "token=", MIXED * 8, " and more"),
    ("password", "ENV DB_PASSWORD ", "tr0ub4" + "dor", "\n"),
    ("password", "default login ada password ", "love" + "lace", "\n"),
    ("password", "machine git.example.com\n  login ada\n  password ", "love" + "lace", "\n"),
    ("password", "- name: DB_PASSWORD\n  value: ", "tr0ub4" + "dor", "\n"),
    ("secret value", '{"name": "API_TOKEN", "value": "', LOWER, '"}'),
    ("password", "<password>", "tr0ub4" + "dor", "</password>"),
    ("password", 'auth: {user: "ada", pass: "', "tr0ub4" + "dor", '"}'),
    ("password", "curl \\\n  --user ada:", "love" + "lace", " \\\n  https://example.com"),
    ("password", '["sshpass", "-p", "', "tr0ub4" + "dor", '", "ssh"]'),
    ("password", "docker login -u ada -p ", "tr0ub4" + "dor", "\n"),
    (
        "authorization header",
        '{"auths": {"a.example.com": {"auth": "',
        base64.b64encode(b"ada:lovelace").decode(),
        '"}}}',
    ),
    ("github token", r'"first line\n', GITHUB, r'\nlast line"'),
    ("secret value", 'token="', MIXED * 8, '"'),
    ("authorization header", "curl -H 'Authorization: Bearer ", LOWER, "'"),
    ("authorization header", r'"{\"Authorization\": \"Bearer ', "abc123" + "def456", r'\"}"'),
]
"""What stands in quotes together with its name, and what is long."""

SAID = [
    (f"{before} ", value, after)
    for value in ("hunter" + "2-Xy77", "tr0ub4" + "dor", "gorilla-" + "Tango-77", "S3cret" + "Pw!")
    for before, after in (
        ("password is", ""),
        ("The password is now", "."),
        ("password changed to", ", tell Bo"),
        ("The admin password was reset to", "."),
        ("We set the password of the staging database to", " today"),
        ("The wifi password for the guest network is", "."),
        ("My password at the bank is", " now"),
        ("password for db.example.com:", ""),
        ("pw:", ""),
        ("wifi pw is", "."),
        ("passphrase:", ""),
    )
] + [
    ('The admin password is "', "hunter" + "2-Xy77", '"'),
    ("Set DB_PASSWORD to '", "tr0ub4" + "dor", "'"),
    ("my PIN is ", "49" + "21", ""),
    ("The PIN for the Visa card is ", "49" + "21", "."),
    ("PIN: ", "4921" + "07", " (door)"),
    ("my password's ", "hunter" + "2", ""),
    ("The wifi password\u2019s now ", "hunter" + "2", "."),
    ("passwd ", "hunter" + "2xyz", ""),
    ("the router: passwd ", "Hunter" + "22!x", ", on the label"),
    ("the garage PIN is ", "44" + "71", ""),
    ("my PIN code is ", "44" + "71", "."),
]
"""Passwords as people tell them: text before, secret, text after."""

ASSIGNED = [
    ("secret_key: ", "zK8#" + "mQ2p!", ""),
    ("export API_TOKEN=", "x9x8" + "x7x6x5", "\n"),
    ('{"api_key": "', "f2a9" + "c14e7b", '"}'),
    ("SECRET=", "AKIAIOSFODNN7" + "ABCDEFGH", ""),
    ("api_key=", "abcdEFGH" + "12345678" + "ijklMNOP", ""),
]
"""Values of secrets that are short, or hold a piece of the alphabet or of the numbers from one."""

INNOCENT = [
    "password: str\ntoken = get_token()\nsecret_key = os.environ['X']\nAPI_TOKEN=$TOKEN api_key=YOUR_API_KEY",
    'token = token2\nsecret = "v1alpha1"\nprivate_key: secp256k1\nencryption_key = "aes256gcm"\nsecret=db/creds#key1',
    'secret_key = "abcdef123456"; api_key=1234567890abcdef; token: my_super_secret_token_12345678',
    "api_key = '0123456789abcdefghijklmnopqrstuvwxyz'; token=sk-test-1234567890; password = abcdef12",
    'KEY = "sk-very-secret-0123456789" and --starting-token 9f86d081884c7d659a2f',
    "sudo passwd root; passwd --help; passwd -l deploy2; cat /etc/passwd shadow2old; passwd web-01",
    "my password's expired, the password's gone, that password's 12 characters, its password's base64url",
    "the code is 404, status code is 404, error code 5512, exit code is 1000, HTTP code 1404, postal code 10115",
    "zip code is 94107, area code 0221, promo code 2024, investigate code 4471, thread-safe code 2024",
    "the door code is 5512; the gate code is 4471; alarm code: 4471",
    "The password is stored in vault-01, and the password for staging is in db-passwords-2.",
    "The password policy changed to 12 characters in 2024; it was reset to the defaults of v2.",
    "We moved password hashing to argon2id, and the password was changed to bcrypt by migration-0042.",
    "Send the password to admin01 and the passphrase to Server2.",
    "PIN code: 560001 and the PIN code is 560001",
    "password for the guest wifi is written on the router of floor2",
    "The password is Correct, the password for Bo is the same as on Monday-12.",
    "pin 13 is the LED; pin is 49210 µm long; the PIN is 3 digits; spinning: 4921",
    "The pwd command, the cwd: build2 and the npw: 12345abc",
    "",
    "The password is base64-encoded and sent over TLS.",
    "She kept the secret for years; a token of her affection.",
    "commit 4d97d58a1b2c3d4e5f60718293a4b5c6d7e8f901",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha512-" + AZURE,
    "RECORD,sha256=aXaDSWkgDt358oVyzK7rG9RCilseGf2vQWpygARFabc,1563 aws secret",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "<img src='data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4'>",
    "ISBN 978-3-16-148410-0 and 9783161484100",
    "EAN 4006381333931",
    "call +49 170 1234567 or (555) 123-4567",
    "at 1700000000000, 1700000000000000 and 1700000000000000000",
    "20241231235959",
    "order 4111111" + "111111111",
    "order number: 4111111" + "111111111",
    "tweet id=4532015" + "112830366",
    "https://example.com/status/4532015" + "112830366",
    "0.4532015112830366 and 4532015112830366.5",
    "4111111" + "111111112 has a wrong check digit",
    "4444444" + "444444444",
    "DE89 3704 0044 0532 0130 00",
    "a4532015112830366 4532015112830366b",
    "default_rng(4532015" + "112830366)",
    "1234 4111 1111 1111 1111 2222",
    "45320151128303664532015112830366",
    "192.168.100.200 2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    'password = os.environ["DB_PASSWORD"]',
    "password = getpass.getpass()",
    "def login(user: str, password: str) -> None: ...",
    "password=None, token=None, secret=None",
    "password = '********'",
    'password = "<your password>"',
    'password = "${DB_PASSWORD}"',
    "password: $DB_PASSWORD1",
    "password: {{ vault_password_1 }}",
    'password = "changeme"',
    'password = "changeme123"',
    'password = "your-password-1"',
    'password = "password123"',
    'password = "test1234"',
    'password = ""',
    'password = "new_password"',
    "password=self.password1, user=self.user1",
    "password = config.db2.password",
    "password: string; token: uint256",
    'token = "identifier"',
    'token_url = "https://example.com/oauth2/token"',
    'api_key = "YOUR_API_KEY_GOES_HERE_1234"',
    'api_key = "xxxxxxxxxxxxxxxxxxxxxxxx1"',
    'api_key = "my-test-key-2024"',
    "api_key_id = 'q7x2m9vbn4k8c1zp'",
    '"NextToken": "eyJOZXh0VG9rZW4iOiBudWxsfQ=="',
    '"publicKeyToken": "1fc8b3b9a1e18e3b"',
    'primary key = "q7x2m9vbn4k8c1zpwd5h"',
    'encryption_key = "arn:aws:kms:us-west-2:417498243647:key/c9fe2447-0795"',
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Basic realm=example",
    "The bearer of this letter is a friend of mine.",
    "https://example.com:8080/path?user=ada@example.com",
    "git@github.com:ada/engine.git ssh://git@example.com:22/a",
    "postgres://app:${DB_PASSWORD}@db",
    "postgres://app:<password>@db and https://x:TOKEN@example.com and http://a:***@b",
    f"{DASHES}BEGIN CERTIFICATE{DASHES}\n{LINES}\n{DASHES}END CERTIFICATE{DASHES}",
    f"{DASHES}BEGIN PUBLIC KEY{DASHES}\n{LINES}\n{DASHES}END PUBLIC KEY{DASHES}",
    f'if "{DASHES}BEGIN PRIVATE KEY{DASHES}" in text:\n    load(text)',
    f"between {DASHES}BEGIN RSA PRIVATE KEY{DASHES} and {DASHES}END RSA PRIVATE KEY{DASHES} lines",
    "sk-estimator-doc-link-wrapper and sk-fading-circle-animation",
    "task-list-item-checkbox-with-label risk-assessment-framework-2024",
    "hf_hub_download_with_progress_callback_function",
    "npm_config_registry_and_other_settings_of_the_client",
    "eyJhbGciOiJub3QganNvbi.eyJzdWIiOiJhZGEi.c2ln",
    _part({"name": "no algorithm here"}) + "." + _part({}) + ".sig",
    "AKIAB is too short, and so are ghp_abc, glpat-x, SK12 and AIza",
    "The password: Server2019's default",
    r"""re.compile("password=\w+", flags) and 'token:\s*\S+'""",
    'query = "password=" + password1 + "&token=" + token1',
    "f'password={user.password1}' and \"password=%(password1)s\"",
    '"--build-arg", "TOKEN=$NPM_TOKEN1"',
    'command: "redis-server --requirepass $REDIS_PASSWORD1"',
    'environment: ["POSTGRES_PASSWORD=${PG_PASSWORD:-postgres}", "PASSWORD=changeme1"]',
    '"token": "data:image/png;base64,' + MIXED * 8 + '"',
    "curl -u user:password https://example.com and curl -u $USER:$PASS https://example.com",
    'curl -u "${USER}:${TOKEN}" -H "Accept: text/html;q=0.9" http://localhost:8080/a:b1',
    "curl -sS --user-agent 'Mozilla/5.0: x1' -o out.html https://example.com:8443/",
    "sshpass -p password ssh host, and the -p option of sshpass takes the password",
    "mysql -h db -P 3306 -p app < dump.sql; docker run --name mysql -p 3306:3306 -p 8080:80/tcp mysql:8.0",
    "mongo --port 27017 and docker login -u ada --password-stdin < pw1.txt",
    "the login page, port -p 2222",
    "machine learning login page password reset1",
    "machine example.com login ada password <password>",
    "use --password to be asked, --token TOKEN, --api-key KEY or --secret-file secrets.yaml",
    "--password-file /run/secrets/db1 --token-ttl 3600s",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db-1, key: password}",
    '{"name": "API_TOKEN", "value": "${API_TOKEN_1}"}',
    "<password>${env.REPOSITORY_PASSWORD1}</password> <token>changeme</token>",
    '<input type="password" id="password1" name="password"><label>Password 1</label>',
    "gsk_your_api_key_goes_here_1234 xai-your-key pplx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "hvs.xxxxxxxxxxxxxxxxxxxxxxxx1 dapi-docs key-value pattern.matching_of_long_names_2 secret_santa_2024_list",
    "re_export_everything_from_module_2 fw_update_version_12 sk.identifier.of.a.thing pat-answers-2024-long",
    "npm run build:prod && rnd_seed_everything_42_for_all_the_runs",
    "ASIAPACIFICECONOMICS ASIATISCHEMARKTLAGE",
    "private_key: Ed25519PrivateKey | RSAPrivateKey, key: PKCS7PrivateKeyTypes",
    'auth": "none", "auth": "c29tZXRoaW5n"',
    "AWS4-HMAC-SHA256 in Authorization: AWS4-HMAC-SHA256 Credential=",
    r"C:\new\token=\nothing and C:\temp\passwords\readme.txt",
    "tests pass: 312, 4 failed; first_pass=2nd; pass: fail",
    "git describe v1.0-24-g9f86d08 and image app:v1.0-rc1",
    "pk_live_" + MIXED[:24],
    "MSG.subject.body",
    "version 1.2.3-beta.4+build.5678901234567890",
    "NUL \x00, a lone surrogate \ud800, עברית and 数据库密码是什么",
]


@pytest.mark.parametrize(
    ("kind", "before", "secret", "after"),
    [*SECRETS, *QUOTED, *(("password", *each) for each in SAID), *(("secret value", *each) for each in ASSIGNED)],
)
def test_a_secret_is_found_exactly_and_named(kind: str, before: str, secret: str, after: str) -> None:
    """A placeholder must leave nothing of the secret behind and take nothing of its surroundings along."""
    text = before + secret + after
    assert find_secrets(text) == (Secret(kind, len(before), len(before) + len(secret)),)


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_survives(text: str) -> None:
    """What is stored is what people search for: a false alarm destroys it."""
    assert redact(text).text == text


def test_every_kind_has_a_sentence_and_an_example() -> None:
    """Keys that show by a vendor's prefix alone have theirs in the table of all forms."""
    vendors = {f"{vendor.lower()} key" for vendor, *_ in VENDORS} | {"mailchimp key", "terraform key"}
    assert {kind for kind, *_ in SECRETS} == set(KINDS) - vendors
    assert all(sentence.endswith(".") for sentence in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_placeholder_is_never_taken_for_a_secret(kind: str) -> None:
    """Placeholders stand where passwords stood, and must not be replaced again."""
    placeholder = f"[redacted: {kind}]"
    for text in (f'password = "{placeholder}"', f"API_KEY={placeholder}", f"https://a:{placeholder}@b.c"):
        assert redact(text).text == text


def test_a_redacted_text_names_its_kinds_in_order() -> None:
    redacted = redact(f"{AWS_ID} then {GITHUB} then {AWS_ID}")
    assert redacted.text == "[redacted: aws access key] then [redacted: github token] then [redacted: aws access key]"
    assert redacted.kinds == ("aws access key", "github token", "aws access key")


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_redacted_key_keeps_its_line_breaks(line_break: str) -> None:
    """References to lines of a file must stay right."""
    text = f"first\n{_block('PRIVATE KEY')}\nlast".replace("\n", line_break)
    redacted = redact(text).text
    assert redacted == "first\n[redacted: private key]\n\n\n\n\nlast".replace("\n", line_break)
    assert len(redacted.splitlines()) == len(text.splitlines())


def test_secrets_that_overlap_become_one_named_by_the_surest() -> None:
    text = f'token = "{GITHUB}.{HEX}"'
    assert find_secrets(text) == (Secret("github token", 9, len(text) - 1),)


def test_a_secret_is_found_at_its_place_among_characters_of_any_script() -> None:
    """Detectors read an ASCII drawing of the text, whose offsets must be the text's own."""
    before = "密码 🔑 \ud800 עברית \x00 "
    assert find_secrets(before + GITHUB + " é") == (Secret("github token", len(before), len(before) + len(GITHUB)),)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "7" * 1_000_000,
        "a1" * 500_000,
        "-" * 1_000_000,
        ("-" * 5 + "BEGIN ") * 90_000,
        ("-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5 + "\n") * 30_000,
        "eyJ" * 330_000,
        "eyJ0." * 200_000,
        "sk-" * 330_000,
        "4111 " * 200_000,
        "password=" * 110_000,
        "token:" * 160_000,
        "://a:" * 200_000,
        "aws secret " * 90_000,
        "[redacted: " * 90_000,
        "awsaws" * 160_000,
        "github_pat_" * 90_000,
        "pscale_pw_." * 90_000,
        "sk-." * 250_000,
        "authorization=" * 70_000,
        "pwd**: " * 140_000,
        'token="' * 140_000,
        "curl -\n" * 140_000,
        "machine a.b login c " * 50_000,
        "passwd " + "a" * 1_000_000,
        "passwd a" * 120_000,
        "password's now " * 60_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_million_characters_of_one_kind_hold_no_secret(text: str) -> None:
    """Such texts make careless patterns take hours: this test would never end."""
    assert find_secrets(text) == ()


def test_keys_that_become_the_same_text_stay_apart_also_where_the_next_names_are_taken() -> None:
    """It never ended where the number that came next was a key already."""
    first, second = (
        f"ghp_{letters}" for letters in ("Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEa", "aEuTgG0fJ6dH4sL8pM2xV7cN1bY5tR9wQ3kZ")
    )
    gone = "[redacted: github token]"
    given = {first: 1, second: 2, gone: 3, f"{gone} 2": 4}
    cleaned = cleaned_json(given, lambda text: redact(text).text)
    assert cleaned == {f"{gone} 3": 1, f"{gone} 4": 2, gone: 3, f"{gone} 2": 4}
