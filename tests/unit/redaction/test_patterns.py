"""Secrets of 90 forms in five contexts, made by chance: all are found, whole, and nothing else is replaced.

Each is put together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import json
import random
import re
import string

import pytest

from commonplace.redaction import KINDS, find_secrets

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_uppercase + "234567",
    "C": string.ascii_uppercase,
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase + string.digits,
    "N": string.digits,
    "U": string.ascii_uppercase + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
}
UUID = "<H8>-<H4>-<H4>-<H4>-<H12>"

# Kind, and its form: `<H32>` stands for 32 hexadecimal digits.
FORMS = [
    ("aws access key", "AKIA<B16>"),
    ("aws access key", "ASIA<B16>"),
    ("aws access key", "AKIA<C16>"),
    ("gcp key", "AIza<W35>"),
    ("gcp key", "GOCSPX-<W28>"),
    ("gcp key", "ya29.<W60>"),
    ("azure key", "<A3>8Q~<A34>"),
    ("github token", "ghp_<A36>"),
    ("github token", "ghs_<A36>"),
    ("github token", "github_pat_<A22>_<A59>"),
    ("gitlab token", "glpat-<W20>"),
    ("gitlab token", "glrt-<W20>"),
    ("slack token", "xoxb-<N12>-<N12>-<A24>"),
    ("slack token", "xapp-1-<U11>-<N13>-<H64>"),
    ("stripe key", "sk_live_<A24>"),
    ("stripe key", "rk_test_<A24>"),
    ("stripe key", "whsec_<A32>"),
    ("anthropic key", "sk-ant-api03-<W93>AA"),
    ("openai key", "sk-proj-<W48>"),
    ("openai key", "sk-or-v1-<H64>"),
    ("hugging face token", "hf_<A34>"),
    ("npm token", "npm_<A36>"),
    ("pypi token", "pypi-AgEIcHlwaS5vcmc<W120>"),
    ("sendgrid key", "SG.<W22>.<W43>"),
    ("twilio key", "SK<H32>"),
    ("private key", "AGE-SECRET-KEY-1<U58>"),
    ("adafruit key", "aio_<A28>"),
    ("airtable key", "pat<A14>.<H64>"),
    ("alibaba cloud key", "LTAI<A20>"),
    ("atlassian key", "ATATT3xFfGF0<W160>=<N8>"),
    ("bitbucket key", "ATBB<A32>"),
    ("brevo key", "xkeysib-<H64>-<A16>"),
    ("buildkite key", "bkua_<H40>"),
    ("cerebras key", "csk-<L48>"),
    ("circleci key", "CCIPAT_<A22>_<H40>"),
    ("clojars key", "CLOJARS_<L60>"),
    ("cloudflare key", "cfut_<A48>"),
    ("cloudflare key", "v1.0-<H24>-<H146>"),
    ("contentful key", "CFPAT-<W43>"),
    ("databricks key", "dapi<H32>"),
    ("databricks key", "dapi<H32>-2"),
    ("digitalocean key", "dop_v1_<H64>"),
    ("docker key", "dckr_pat_<W27>"),
    ("doppler key", "dp.pt.<A43>"),
    ("doppler key", "dp.st.dev_main.<A43>"),
    ("duffel key", "duffel_live_<W43>"),
    ("dynatrace key", "dt0c01.<B24>.<B64>"),
    ("e2b key", "e2b_<H40>"),
    ("easypost key", "EZAK<A54>"),
    ("figma key", "figd_<W40>"),
    ("fireworks key", "fw_<A24>"),
    ("flutterwave key", "FLWSECK-<A32>-X"),
    ("fly key", "fo1_<W43>"),
    ("fly key", "fm2_<A120>"),
    ("grafana key", "glsa_<A32>_<H8>"),
    ("grafana key", "glc_eyJvIjoi<A80>=="),
    ("groq key", "gsk_<A52>"),
    ("hashicorp vault key", "hvs.<W95>"),
    ("heroku key", "HRKU-" + UUID),
    ("heroku key", "HRKU-AA<W58>"),
    ("hubspot key", "pat-na1-" + UUID),
    ("jina key", "jina_<H32><W28>"),
    ("jfrog key", "AKCp<A69>"),
    ("langsmith key", "lsv2_pt_<H32>_<H10>"),
    ("linear key", "lin_api_<A40>"),
    ("mailchimp key", "<H32>-us14"),
    ("mailersend key", "mlsn.<H64>"),
    ("mailgun key", "key-<H32>"),
    ("mapbox key", "sk.eyJ1Ijoi<A60>.<W22>"),
    ("neon key", "napi_<L64>"),
    ("netlify key", "nfp_<A36>"),
    ("new relic key", "NRAK-<U27>"),
    ("notion key", "ntn_<A46>"),
    ("notion key", "secret_<A43>"),
    ("nuget key", "oy2<L43>"),
    ("nvidia key", "nvapi-<W64>"),
    ("1password key", "ops_eyJzaWdu<A240>"),
    ("perplexity key", "pplx-<A48>"),
    ("pinecone key", "pcsk_<A6>_<A60>"),
    ("planetscale key", "pscale_tkn_<W43>"),
    ("posthog key", "phx_<A43>"),
    ("postman key", "PMAK-<H24>-<H34>"),
    ("prefect key", "pnu_<A36>"),
    ("pulumi key", "pul-<H40>"),
    ("razorpay key", "rzp_live_<A14>"),
    ("readme key", "rdme_<L70>"),
    ("replicate key", "r8_<A37>"),
    ("resend key", "re_<A8>_<A24>"),
    ("rubygems key", "rubygems_<H48>"),
    ("sentry key", "sntryu_<H64>"),
    ("sentry key", "sntrys_eyJpYXQi<A120>=_<A43>"),
    ("shippo key", "shippo_live_<H40>"),
    ("shopify key", "shpat_<H32>"),
    ("sonarqube key", "squ_<H40>"),
    ("sourcegraph key", "sgp_<H16>_<H40>"),
    ("square key", "sq0atp-<W22>"),
    ("square key", "sq0csp-<W43>"),
    ("supabase key", "sbp_<H40>"),
    ("supabase key", "sb_secret_<W31>"),
    ("tailscale key", "tskey-auth-<A17>-<A32>"),
    ("tavily key", "tvly-dev-<A32>"),
    ("terraform key", "<A14>.atlasv1.<W67>"),
    ("together key", "tgp_v1_<W43>"),
    ("typeform key", "tfp_<W44>"),
    ("vercel key", "vcp_<A56>"),
    ("wakatime key", "waka_" + UUID),
    ("xai key", "xai-<A80>"),
]

# Kind, what names it, the form, and what follows: those that only their surroundings tell.
NAMED = [
    ("aws secret key", "aws_secret_access_key=", "<A40>", ""),
    ("azure key", "AccountKey=", "<A86>==", ""),
    ("telegram token", "bot<N9>:", "AA<W33>", ""),
    ("slack webhook", "https://hooks.slack.com/services/", "T<U8>/B<U8>/<A24>", ""),
    ("discord token", "https://discord.com/api/webhooks/", "<N18>/<W68>", ""),
    ("password in a url", "postgres://app:", "<A12>", "@db.example.com/app"),
    ("authorization header", "Authorization: Bearer ", "<A40>", ""),
    ("password", "POSTGRES_PASSWORD=", "<A6>7x<A6>", ""),
    ("password", "Server=db;User Id=sa;Password=", "<A6>7x<A6>", ";Encrypt=true"),
    ("password", "smtp_pass: ", "<A6>7x<A6>", ""),
    ("password", "deploy --password ", "<A6>7x<A6>", " now"),
    ("password", "curl -u ada:", "<A6>7x<A6>", " https://example.com"),
    ("password", "sshpass -p ", "<A6>7x<A6>", " ssh ada@example.com"),
    ("password", "mysql -u root -p", "<A6>7x<A6>", " app"),
    ("password", "machine example.com login ada password ", "<A6>7x<A6>", ""),
    ("secret value", "X-Api-Key: ", "<A32>", ""),
    ("secret value", "client_secret=", "<A32>", ""),
    ("secret value", "deploy --token ", "<A32>", " now"),
]

CONTEXTS = {
    "bare": "We use {} there.",
    "in double quotes": 'call("{}")',
    "in single quotes": "call('{}')",
    "in a string of JSON": None,
    "in a command": "docker run --rm -e VALUE='{}' image",
}


def _made(form: str, chance: random.Random) -> str:
    """Return a form with its letters drawn, with a digit and both sizes of letters where it has room for them."""

    def drawn(match: re.Match[str]) -> str:
        return "".join(chance.choice(ALPHABETS[match[1]]) for _ in range(int(match[2])))

    return re.sub(r"<([A-Z])(\d+)>", drawn, form)


def _cases(context: str) -> list[tuple[str, str, str]]:
    """Return kinds, texts and the secrets in them, of every form in one context."""
    chance = random.Random(context)
    cases = []
    for kind, before, form, after in [*((kind, "", form, "") for kind, form in FORMS), *NAMED]:
        for _ in range(20):
            secret = _made(form, chance)
            named = _made(before, chance) + secret + after
            if context == "in a string of JSON":
                text = json.dumps({"note": json.dumps({"line": f"first\n{named}\nlast"})})
            else:
                text = CONTEXTS[context].format(named)
            cases.append((kind, text, secret))
    return cases


def test_the_table_has_every_kind() -> None:
    """Web tokens and cards have parts that agree with each other; the examples of all kinds hold them."""
    kinds = {kind for kind, *_ in [*FORMS, *NAMED]}
    assert len(kinds) >= 75
    assert set(KINDS) - kinds == {"json web token", "payment card"}


@pytest.mark.parametrize("context", CONTEXTS)
def test_secrets_made_by_chance_are_found_whole_in_every_context(context: str) -> None:
    """Precision of 1, not one letter too many or too few; recall of .999: by chance a password can spell a stand-in."""
    cases = _cases(context)
    found = [
        (kind, text, secret, [(each.kind, text[each.start : each.end]) for each in find_secrets(text)])
        for kind, text, secret in cases
    ]
    assert [case for case in found if case[3] not in ([], [(case[0], case[2])])] == []
    assert sum(not case[3] for case in found) <= len(cases) // 1_000
