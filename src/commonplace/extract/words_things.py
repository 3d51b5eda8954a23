"""Words that tell organisations, tools, and what kind of thing a common noun is."""

from __future__ import annotations

from typing import Final

ORGANIZATION_HEADS: Final = frozenset(
    """
academy administration agency airlines airways alliance army assembly associates association authority bank board
brigade broadcasting brothers bureau cabinet co college command commission committee communications company conference
confederation congress consortium consulate convention cooperative corp corporation council court courts department
dept division duma embassy enterprises exchange faction federation force forces foundation front fund gmbh government
group guard holdings hospital inc industries institute institution jury laboratories laboratory league legislature
limited llc lp ltd magazine marines media ministry motors movement navy network newspaper office orchestra
organisation organization parliament partners party patrol plc police post press ag sa school schools senate service
services society subcommittee symphony systems team technologies television tribune tribunal trust union university
ventures news times herald journal university gazette laboratories church technology agriculture treasury team guild
nv bv oy ab kk studios labs lab airline club coalition unions international railroad railway properties nations fleet
firm community center centre centers
theater theatre museum radio embassy
""".split()
)

TITLED_NOUNS: Final = frozenset(
    """
account accounts act affair affairs age ages agreement air american angel annual anniversary api architecture area art
article assets audit award awards back bay beach bear best bill black blue bonds book books border branch bridge budget
bug build business campaign capital case cases central chapter charter check china christmas civil class clean client
cloud club code cold common concept conference config constitution context control corner counties county crime cross
culture cup daily data day days dark deal death debt decision decisions declaration deep defense democratic dependency
design desk detail details development digital direct discovery doc docs document domain domestic draft drive drug
early
earth east eastern economic economy edge edition editorial education election electric employee employees energy error
errors estate event events evening express eye face fact facts fair family far fashion fast feature features federal
festival field fifth file files film final finance financial fire first flag flats flight floor flow food football
foreign forest form forward foundation fourth free freedom front fuel full fund future game games garden gate gateway
general generation global goal gold golden good governors grand grant gray great green ground guard guide gulf half
hand
handling hard head health heart heavy high highway hill history holy home horse hot hour hours human idea independence
index industrial industry information inner input institute interface internal international internet interstate iron
issue issues job joint journal jungle junior key kitchen known labor land large last late launch law layer leader legal
letter level liberty life light limited line link list little live local log logic long love low machine magazine main
major manager manual map market master match material media medical meeting memory men middle migration military minor
mobile model modern module money moon morning motel mother motor mountain movie music mutual name national nations
native natural nature navy net network new news next night nobel north northern note notes nuclear number ocean office
official oil old olympic open opera operation order original outer output overview page panel paper parade park part
party pass path patriotic peace people performance phase phone pipeline plan planning plant platform play players plaza
point police policy pool popular post power preferential press price pride prime private prize pro process product
production program project property protocol public pull quality quarter question quick race railroad random rapid read
real record red reference reform refuge region release relief religious report reports republic republican request
requests requirement research reserve review revolution rice rights river road rocket role room rose royal rule rules
run safe safety sale sales satellite sauce scene schema science sea search season seconds secret section security seed
self series server service session set shell ship shop short show side silver single site sixth sky small social
society soft software solar source south southern space special sport sports spring square staff stage standard star
start state states station status steak step stock stone storage store storm story street strong structure student
studies studio study style success summary summer sun super supply support surface survey system systems table task
tasks tax team technical tech test tests theory third time times title today token tomorrow tool top total tour tower
town track trade traffic training transport treaty trends trial truth tunnel type under union unit united update upper
user valley value version very victim video view village virtual vision voice wall war warning waste watch water wave
way weather web week weekend welcome welfare west western white wild wind window winter wizards wonder wood work worker
workers works world worst year young zone
""".split()
)
"""Common nouns and adjectives that titles and headings capitalise; a name with one of them is hardly a person's."""

ORGANIZATION_OF: Final = frozenset(
    """
academy association bank board bureau chamber church college committee congress council court department federation
foundation institute league ministry museum office organisation organization party school senate society
university union centers center commission institutes division
""".split()
)
"""May be followed by `of` or `for` and more of the name: `University of Texas`, `Centers for Disease Control`."""

ORGANIZATION_FOR: Final = frozenset(
    "academy agency association bureau center centers centre commission committee council department foundation fund "
    "institute office organization school society".split()
)

ORGANIZATIONS: Final = frozenset(
    """
nasa fbi cia nsa ge ibm nato un u.n eu e.u ap upi reuters ussr kgb irs epa fda fcc faa sec nlrb dea doj hud hhs gao
gsa
who imf opec unesco unicef plo ira anc cnn nbc cbs abc bbc pbs espn aclu naacp nra afl-cio ucla mit usc nyu at&t gm
interpol congress senate pentagon aeroflot amtrak google microsoft apple amazon meta facebook netflix twitter
openai anthropic mistral nvidia intel amd oracle sap samsung sony toyota honda nissan bmw volkswagen siemens bosch
philips nokia ericsson ikea spotify airbnb uber lyft stripe shopify paypal visa mastercard boeing airbus lockheed
exxon shell bp chevron walmart target costco starbucks mcdonald's disney pixar hbo harvard yale princeton stanford
oxfam greenpeace itar-tass tass xinhua yonhap afp dpa pravda izvestiya hamas hezbollah hizballah taliban mossad
salesforce hubspot zendesk atlassian jetbrains canonical suse vmware broadcom qualcomm cisco dell hp lenovo acer asus
deepmind initech acme globex cbi dnc rnc cdc nih noaa usda usgs osha aarp nfl nba nhl mlb ncaa fifa uefa ioc
""".split()
)

TOOLS: Final = frozenset(
    """
postgres postgresql mysql mariadb sqlite duckdb mongodb redis memcached cassandra dynamodb cockroachdb clickhouse
elasticsearch opensearch neo4j kafka rabbitmq nats zookeeper etcd consul vault nginx apache caddy traefik envoy istio
docker podman kubernetes k8s helm terraform ansible pulumi vagrant jenkins circleci travis github gitlab bitbucket git
mercurial svn jira confluence notion slack discord teams zoom figma sketch linear trello asana obsidian
python javascript typescript java kotlin scala clojure groovy ruby rust go golang swift haskell ocaml elixir erlang
julia perl php lua dart fortran cobol c++ c# f# objective-c zig nim bash zsh fish powershell
react angular vue svelte next.js nuxt remix astro solidjs jquery redux tailwind bootstrap webpack vite rollup esbuild
babel eslint prettier npm yarn pnpm bun deno node node.js express fastify nestjs django flask fastapi starlette
pydantic sqlalchemy alembic celery pytest unittest hypothesis mypy ruff black pip poetry uv conda numpy pandas polars
scipy scikit-learn pytorch tensorflow jax keras spark hadoop airflow dagster dbt snowflake bigquery redshift
databricks
rails laravel symfony spring hibernate gradle maven bazel cmake make cargo tokio axum actix flutter electron tauri
graphql grpc protobuf prometheus grafana datadog sentry splunk kibana logstash jaeger opentelemetry
aws gcp azure heroku vercel netlify cloudflare fastly digitalocean s3 ec2 lambda fargate supabase firebase auth0 okta
vim neovim emacs vscode intellij pycharm xcode cursor copilot claude chatgpt gpt-4 gemini llama linux macos windows
ubuntu debian fedora android ios chrome firefox safari playwright selenium cypress jest vitest mocha storybook
graphiti langchain llamaindex faiss qdrant pinecone weaviate chroma milvus pgvector ollama excel photoshop
gmail dropbox
""".split()
)
PLAIN_TOOLS: Final = frozenset(
    """
apache black bun caddy chrome consul cursor dart envoy excel express fish flask flutter git go helm hypothesis
julia lambda linear make nats node notion poetry prettier python ruby rust safari sentry slack spark spring sketch
swift
target teams vault windows yarn zoom remix astro travis shell black rails mocha jest celery bash copilot chroma
""".split()
)
"""Tools that are also plain words: small letters alone do not tell them."""

TOOL_NAMES: Final = frozenset(
    (
        "visual studio code, visual studio, vs code, github actions, google cloud, google docs, google drive, "
        "ruby on rails, react native, spring boot, apache kafka, apache spark, amazon s3, tailwind css"
    ).split(", ")
)

CONCEPT_ACRONYMS: Final = frozenset(
    """
api apis jwt oauth websocket sql http https json xml yaml html css csv pdf url uri uuid id cpu gpu ram ssd ui ux cli
gui sdk ide orm rest rpc
tcp udp ip dns ssl tls ssh vpn ci cd cicd qa pr prs mr todo fixme utc gmt est pst am pm ok llm ai ml nlp rag mcp csp
aids
hiv dna rna tv pc vcr gnp gdp ceo cto cfo coo cio vp dba faq eta mvp okr kpi crud acid cap bm25 rrf faq diy diy i/o io
""".split()
)

KINDS: Final[dict[str, str]] = {
    **dict.fromkeys("file script config dockerfile makefile readme spec".split(), "file"),
    **dict.fromkeys(
        "service microservice app application project repo repository product website site backend frontend platform "
        "dashboard worker monolith plugin bot portal pipeline".split(),
        "project",
    ),
    **dict.fromkeys(
        "database db library framework tool editor language compiler linter sdk browser orm".split(),
        "tool",
    ),
    **dict.fromkeys(
        "team company firm startup agency department bank university school organization".split(), "organization"
    ),
    **dict.fromkeys(
        "city town village country office building street region datacenter house apartment".split(), "place"
    ),
    **dict.fromkeys(
        "meeting conference outage incident release launch deadline migration sprint workshop trip wedding party "
        "crash failure deployment rollout retro hackathon interview holiday vacation birthday".split(),
        "event",
    ),
    **dict.fromkeys(
        "engineer developer manager designer colleague friend boss wife husband sister brother mother father daughter "
        "son cousin aunt uncle grandmother grandfather neighbour neighbor doctor client customer partner "
        "roommate".split(),
        "person",
    ),
}
"""The type of a thing by the last word of what it is called."""

CLASS_NOUNS: Final = frozenset(
    """
file module class function method package library framework database db service app application project repo
repository
tool editor language company city team script component interface protocol trait decorator hook command helper header
crate gem endpoint table server
folder directory
""".split()
)
"""Behind or before a name these only say what it is: `the auth.ts file`."""

FILE_ENDINGS: Final = frozenset(
    """
ts tsx js jsx mjs cjs py pyi ipynb rb go rs java kt scala c h cc cpp hpp cs swift m php pl lua sh bash zsh sql json
yaml
yml toml ini cfg conf env xml html css scss less md mdx rst txt csv tsv log lock pdf png jpg jpeg svg gif docx xlsx
pptx ex exs clj hs ml vue svelte proto graphql tf ipynb parquet db sqlite zip tar gz bat ps1 gradle
""".split()
)
