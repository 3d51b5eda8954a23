"""Parse the events of agent clients' hooks and write the answers.

The events and their fields are those of Claude Code and Codex; `BeforeAgent` is Gemini CLI's name for a prompt,
`PreCompress` that for `PreCompact`. Clients take the answer to a session's start or a prompt as plain text, and any
other only as JSON.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.text.languages import STOP_WORDS

TEXT_EVENTS: Final = ("SessionStart", "UserPromptSubmit")
JSON_EVENTS: Final = ("SubagentStart", "BeforeAgent")
EVENTS: Final = (*TEXT_EVENTS, *JSON_EVENTS)
"""Those that take a context."""
PROMPTS: Final = ("UserPromptSubmit", "BeforeAgent")
COMPACTIONS: Final = ("PreCompact", "PreCompress")
"""Those that say that a conversation is about to lose what was injected into it."""
_LOSING_SOURCES: Final = ("compact", "clear")
"""Of the start of a session: what stood in the conversation before is gone."""
_FIELDS: Final = ("hook_event_name", "prompt", "cwd", "agent_type", "session_id", "agent_id", "source")

SAID_WITHOUT_CONTENT: Final[Mapping[str, str]] = {
    "assent and manners": """
        yes yeah yep yup yea ya y ok okay okey k kk sure fine right correct exactly indeed absolutely definitely agreed
        agree true nope nah n never mind nevermind maybe perhaps please pls plz thank thanks thx ty cheers sorry hello
        hi hey bye welcome great good nice cool perfect awesome excellent wonderful amazing lovely brilliant fantastic
        super neat sweet wow well job lgtm look looks sound sounds seem seems better best enough got understood see
        hm hmm mhm uh um ah oh aha huh claude codex gemini copilot gpt buddy mate man dude course problem worries idea
        point way like love happy ready think want need help much many lot makes sense whatever wish call bad lol haha
        interesting minute moment time morning approve approved accept accepted confirm confirmed judgment judgement
    """,
    "the work itself": """
        commit commits push pull fetch merge rebase amend squash stage git pr request branch main master origin remote
        message continue proceed go going goes ahead run rerun execute fix done try retry redo start begin resume stop
        wait pause hold cancel abort undo revert rollback ship apply save send finish complete keep carry next make let
        lets get give take put use show tell say explain add remove delete update change changes changed create write
        rewrite clean check review move rename format open close summarize summarise shorter longer simpler work works
        worked working fail fails failed failing broken implement implementing
    """,
    "what is pointed at": """
        one ones two three first second third last next everything anything something nothing thing things else option
        options part step steps rest whole file files code version now yet still also really quite actually instead
        anyway already quickly others us gonna wanna im dont cant doesnt didnt isnt thats whats isn wasn aren weren
        doesn didn won wouldn couldn shouldn hasn haven hadn ain
    """,
    "German": """
        ja jo jep nein nee doch danke dankeschön bitte bitteschön gern gerne klar gut sehr super toll prima genau
        richtig perfekt passt stimmt einverstanden okay weiter weitermachen mach mache machen macht los fertig alles
        jetzt dann so noch mal einmal nochmal nochmals wieder versuch versuche versuchs probier probiere sieht aus
        klingt committe committen pushe pushen führe starte stopp warte halt nächste nächster nächsten nächstes
        behebe repariere korrigiere fahr fahre fort den das der dem es ist und oder aber auch nicht nur ein eine einen
        du kannst kann ich wir mir uns dir zu zum im in auf von mit für hier da schon erst ganz einfach
    """,
    "French": """
        oui ouais non merci s il te vous plaît stp svp d accord ok parfait bien très c est bon ça ca marche encore
        vas y va allez allons continue continuez poursuis essaie essaye réessaie recommence fais faites le la les l un
        une ce cela cette super génial suivant suivante arrête attends lance corrige exactement tout tous à au fait
        faire et ou mais aussi pas ne je tu nous on de du des en maintenant fois nouveau exact entendu commite
    """,
    "Spanish and Portuguese": """
        sí si no gracias por favor continúa continua continúe continuar sigue siga adelante vale bueno bien buena
        perfecto perfeito muy hazlo haz hágalo eso esto esta este otra vez de nuevo intenta inténtalo arréglalo
        corrígelo ejecuta ejecútalo dale listo claro está correcto exacto genial siguiente para espera el la lo los y
        pero también un una me te se que ahora todo ya sim não obrigado obrigada tente novamente isso
    """,
    "Chinese, Japanese and Korean": """
        好 好的 好吧 是 是的 对 对的 可以 行 没问题 继续 请继续 继续吧 谢谢 谢谢你 多谢 不 不是 不用 再试一次 提交
        はい うん いいえ ありがとう ありがとうございます お願いします 続けて 続けてください もう一度 いいね 了解
        네 예 응 아니요 감사합니다 고마워 고마워요 계속 계속해 계속해줘 계속해주세요 다시 좋아 좋아요 알겠습니다
    """,
}
"""Words of which a prompt may consist that says nothing to find a memory by, besides English stop words."""
_ASKING: Final = frozenset({"who", "whom", "whose", "where", "when", "which", "how"})
"""Common as they are, these ask for something where more is said: "who am I", but not "how so"."""
_MIN_WORDS: Final = 3
_MAX_DIGITS: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
_SLASH_COMMAND: Final = re.compile(r"\s*/[\w:.-]+\s*")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What happened in a client.

    Attributes:
        name: one of `EVENTS`, or "" where the client names none.
        prompt: what is to be done; "" where nobody has said so yet.
        directory: in which the client works, "" where it does not say.
        agent: of what type the agent is that begins or asks, "" for the client's own.
        session: of the client, "" where it does not say. An agent that is one of several in it has an `agent_id`, for
            it reads a conversation of its own.
        source: why a session starts, in the client's words.
    """

    name: str = ""
    prompt: str = ""
    directory: str = ""
    agent: str = ""
    session: str = ""
    agent_id: str = ""
    source: str = ""

    @property
    def conversation(self) -> str:
        """The name of the conversation that the answer goes into, "" where the client names no session."""
        return f"{self.session}\n{self.agent_id}" if self.session else ""

    @property
    def is_prompt(self) -> bool:
        """Whether somebody said something, be it nothing but white space."""
        return bool(self.prompt) or self.name in PROMPTS

    @property
    def is_compaction(self) -> bool:
        """Whether nothing is asked for: what was injected is about to be lost."""
        return self.name in COMPACTIONS

    @property
    def loses_context(self) -> bool:
        """Whether what was injected into the conversation before is not in it any more."""
        return self.is_compaction or self.source in _LOSING_SOURCES

    @property
    def takes_text(self) -> bool:
        return not self.name or self.name in TEXT_EVENTS


def parse_event(data: bytes) -> HookEvent:
    """Return the event that is written as one JSON object.

    Raises:
        UsageError: it is none, or one that takes no context and is no compaction.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"standard input is not JSON: {error}", remedy="pass the event as the client wrote it"
        ) from error
    fields = [event.get(name) or "" for name in _FIELDS] if isinstance(event, dict) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise UsageError("standard input is no hook event", remedy='pass an object such as {"prompt": "…"}')
    found = HookEvent(*fields)
    if found.name and found.name not in (*EVENTS, *COMPACTIONS):
        raise UsageError(
            f"the event {found.name!r:.80} takes no context",
            remedy=f"register the hook for {', '.join((*EVENTS, *COMPACTIONS))}",
        )
    return found


def answer(event: HookEvent, context: str) -> dict[str, Any]:
    """Return the JSON that a hook prints so that the client adds a context to the conversation."""
    return {"hookSpecificOutput": {"hookEventName": event.name or TEXT_EVENTS[-1], "additionalContext": context}}


def has_content(prompt: str) -> bool:
    """Tell whether a prompt says anything that a memory could be found by: "ok, commit this please" does not.

    It does as soon as one word is neither a stop word nor one of `SAID_WITHOUT_CONTENT`, nor the number of an option. A
    command of the client itself, such as `/compact`, does not.
    """
    if _SLASH_COMMAND.fullmatch(prompt):
        return False
    asks = False
    for number, found in enumerate(_WORD.finditer(prompt), start=1):
        word = _folded(found[0])
        asks = asks or word in _ASKING
        if asks and number >= _MIN_WORDS:
            return True
        if word not in _WITHOUT_CONTENT and not (word.isdecimal() and len(word) <= _MAX_DIGITS):
            return True
    return False


def _folded(word: str) -> str:
    """Return a word in small letters without accents, as people type it."""
    bare = (each for each in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(each))
    return unicodedata.normalize("NFC", "".join(bare))


_WITHOUT_CONTENT: Final = STOP_WORDS.union(
    _folded(word) for words in SAID_WITHOUT_CONTENT.values() for word in words.split()
)
