"""The words of each language that are too common to find anything by, and by which the language itself is known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ENGLISH: Final = "english"

_COMMON: Final = """
a about after again all also am an and any are as at be because been before being both but by can could did do does
doing don down during each few for from further had has have having he her here hers him his how i if in into is it
its itself just ll me more most my no nor not of off on once only or other our ours out over own re s same she should
so some such t than that the their theirs them then there these they this those through to too under until up ve very
was we were what when where which while who whom why will with would you your yours d m
"""
STOP_WORDS: Final = frozenset(_COMMON.split())
"""The English ones."""

_TASK: Final = """
able accept according achieve actually add additional adjust advance advice advise afterwards agree already also
always anybody anyone anything appear apply appreciate approach appropriate arrange ask aspect assess assign assist
assume assure attempt attention available avoid aware basic become begin behave behaviour believe best better bit
brief briefly bring broken care careful carefully case catch certain change check checklist choose clarify clean clear
clearly colleague collect come comment complain complete completely concern confirm confused consider contribute
correct correctly could couple course cover create current currently customer day deal decide define deliver
demonstrate depend describe description deserve desire detail detailed determine developer different difficult
discover discuss document documentation doubt draft during early easily easy either else encounter end engineer enough
ensure entire especially evaluate even ever every everybody everyone everything exactly examine example except
exercise exist expect experience explain explanation explore express extend extra fail familiar feature feedback feel
figure final finally find fine finish fit fix focus follow forget forward fully further future gather general
generally get give glad go goal good great guide guideline handle happen happy hard hello help helpful hey highlight
hint hope however huge idea identify implement implementation imply important improve improvement include indeed
indicate inform information insight inspect instead instruction intend interested interesting introduce investigate
involve issue join keep kind kindly know lack last later latest lead learn least leave less let level like likely list
little long look lot main mainly maintain maintainer make manage manual many mark matter may maybe mean meet meeting
member mention might mind minor miss missing moment month morning mostly move much must name namely near necessary
need neither never new newcomer next nice nobody normal normally note nothing notice now obvious occur offer often ok
okay old one ones open opinion opportunity option ought outcome outline overall overview part particular past people
perfect perform perhaps person perspective picture piece place plan plausible please plus point possible possibly
practical practice precise prefer prepare present pretty previous previously prior probably problem proceed progress
project proper properly proposal propose prove provide purpose put quality question quick quickly quite raise rather
read reader ready real realise really reason reasonable recap recent recently recommend refactor refer regard
regarding related relevant reliable remain remember remind remove reproduce request require research resolve respect
respond responsible rest result return review revise rewrite right risk roughly safe safely say scenario see seem
sense separate serious set several shall share short show side significant similar simple simply since situation
slightly small solid solution solve some somebody somehow someone something sometimes somewhere soon sort special
specific sprint stakeholder start state statement stay step still stop story straightforward strategy stuck stuff
submit sufficient suggest suggestion suitable summarise summarize summary supply support suppose sure surely survey
take talk task teach team teammate tell thank thing think thorough thoroughly though thought three throughout thus
ticket time tip today together tomorrow tonight topic toward towards treat trouble true try turn tutorial two
understand understandable understanding unexpected unless update upon us usage use useful usual usually various verify
via view wait walk want way week weekly welcome well whatever whether whole wish within without wonder word work
workshop worry would write wrong year yesterday yet
"""
TASK_WORDS: Final = frozenset(_TASK.split())
"""English words by which people ask for work, whatever it is about; beside them stands what it is about."""

FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        ENGLISH: STOP_WORDS,
        "catalan": frozenset(
            """
            a al als amb aquest aquesta això aquí com de del dels des el ella els em en ens era es és està
            estan et fa ha han he hem hi i ja la les li meu meva més no nosaltres o on per però perquè què
            qui quan quin quina se seu seva són sense també teu teva un una us va vaig vam van
            """.split()
        ),
        "czech": frozenset(
            """
            a aby ale ano bez bude byl byla bylo být co do ho i já jak jaká jaké jaký je jeho její jejich
            jen ji jsem jsi jsme jsou jste k kam kde kdo kdy která které který kvůli mám má máme mě mi mně
            moje můj na nad naše ne nebo není než o od po pod pro proč protože před při s se si ta tady
            tak také ten to tu u už v ve za ze že
            """.split()
        ),
        "danish": frozenset(
            """
            af alle at blev bliver da de dem den denne der deres det dette dig din dit du efter eller en
            er et for fra ham han har havde hende hendes her hos hun hvad hvem hver hvilken hvor hvordan
            hvorfor hvornår i ikke ind jeg jer kan kunne man med meget men mig min mit mod når ned nogle
            nu og også om op os over på sig sin skal skulle som til ud under var ved vi vil ville vores
            være
            """.split()
        ),
        "dutch": frozenset(
            """
            aan al alle als bij daar dan dat de deze die dit doen door een en er ge geen had heb hebben
            heeft hem hen het hier hij hoe hun ik in is je jij jouw jullie kan maar me meer men met mij
            mijn moet naar niet nog nu of om omdat onder ons onze ook op over te tegen toch tot u uit uw
            van veel voor waar waarom wanneer waren was wat we wel welke werd wie wij wil worden wordt zal
            ze zich zij zijn zo zonder zou
            """.split()
        ),
        "finnish": frozenset(
            """
            ei että en eivät han he heidän hän hänen ja jo joka jos jotka kanssa kuin kuka kun kuinka
            kuten me meidän mikä miksi milloin minkä minua minulla minun minä missä mistä mitä mihin miten
            mutta myös ne niin nyt ole olen olet oli olla on ovat se sen sekä sinun sinä siellä siitä sitä
            tai tämä tämän te vain vai voi
            """.split()
        ),
        "french": frozenset(
            """
            à ai au aussi aux avait avec avez avons c ce ces cet cette chez comme comment d dans de des du
            elle elles en es est et étaient était être eu il ils j je l la le les leur leurs lui ma mais
            me mes moi mon n ne nos notre nous on ont ou où par pas pour pourquoi qu quand que quel quelle
            quelles quels qui quoi s sa sans se sera ses si son sont sur t ta te tes toi ton très tu un
            une va vos votre vous y
            """.split()
        ),
        "german": frozenset(
            """
            aber alle als am an auch auf aus bei beim bin bis da damit dann das dass daß dein deine dem
            den denn der des dessen dich die dies diese diesem diesen dieser dieses dir doch du durch ein
            eine einem einen einer eines er es euch euer eure für gegen hab habe haben hat hatte hatten
            hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jeden jeder jedes kann
            kein keine keinen können man mein meine meinem meinen meiner mich mir mit muss müssen nach
            nicht noch nur ob oder ohne sein seine seinem seinen seiner seit sich sie sind so soll sollen
            sollte über um und uns unser unsere unserem unseren unserer unter vom von vor wann war waren
            warum was weil welche welchem welchen welcher welches wem wen wenn wer werden wessen wie
            wieder wieso wir wird wo wohin wurde wurden zu zum zur zwischen
            """.split()
        ),
        "hungarian": frozenset(
            """
            a az azért azt be csak de egy ehhez ez ezt és fel ha hanem hogy hogyan hol hova ki is itt kell
            kinek lesz már majd még meg mely melyik mert mi mihez miért mikor milyen mit most nagyon ne
            nekem nekünk nem nincs olyan ott ő össze pedig s sem szerint talán te úgy utána vagy vagyok
            van vannak volt volna
            """.split()
        ),
        "italian": frozenset(
            """
            a ad agli ai al alla alle allo anche che chi ci come con cosa cui da dal dalla dalle degli dei
            del della delle dello di dov dove è e ed era erano fra gli ha hanno ho i il in io l la le lei
            li lo loro lui ma mi mia mie miei mio ne nei nel nella nelle noi non nostra nostro o per
            perché più qual quale quali quando quanto quella quelle quelli quello questa queste questi
            questo se sei si sia siamo sono sta su sua sue sui sul sulla suo suoi ti tra tu tua tuo un una
            uno voi
            """.split()
        ),
        "norwegian": frozenset(
            """
            alle at av ble blir da de dem den denne der deres det dette deg din ditt du eller en er et
            etter for fordi fra før ha hadde han hans har henne hennes her hos hun hva hvem hver hvilken
            hvis hvor hvordan hvorfor i ikke inn jeg kan kunne man med meg men min mitt mot mye når ned
            noen nå og også om opp oss over på seg sin skal skulle som til ut var ved vi vil ville være
            vår våre
            """.split()
        ),
        "polish": frozenset(
            """
            a albo ale bardzo bez bo był była było być będzie co czy dla do gdy gdzie go i ich ile im ja
            jak jaka jaki jakie jako je jego jej jest jestem jeszcze już każdy kiedy kogo kto która które
            który lub ma mam mi mnie mój moja moje może my na nad nas nasz nie niż o od on ona oni po pod
            ponieważ przed przez przy są się ta tak także tam te tego tej ten to tu tym w was we więc
            wszystko z za ze że żeby
            """.split()
        ),
        "portuguese": frozenset(
            """
            até cada pelo devem deve a à ao aos aquela aquele as às com como da das de dela dele deles
            depois do dos e é ela elas ele eles em entre era essa esse esta está estão este eu foi foram
            há isso isto já lhe mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós
            nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque quais qual quando que
            quem são se sem ser seu seus só sou sua suas também te tem tenho ter teu tu tua um uma você
            vocês
            """.split()
        ),
        "romanian": frozenset(
            """
            acest această acesta acestea aceste al ale am ar are asta așa au avea avem ca care ce când cât
            că căci către ce cine cu cui cum da dacă de deci decât despre din doar după ea ei el era este
            eu face fi fiind fost în între îi îl își la le lor lui mai mea mei meu mi mult nici noi nostru
            noastră nu o ori pe pentru prin sa sau să se si și sunt ta tău te tu un una unde unei unui va
            voi
            """.split()
        ),
        "russian": frozenset(
            """
            какого какому каком какую каких каким которого которой которую которые нашего нашей нашему
            нашу наши моего моей моему мою моём всех меня а без бы был была были было быть в вам вас весь
            во вот все всё вы где да для до его ее её ей ему если есть еще ещё же за зачем и из или им их
            к как какая какие какое какой когда кого ко который кто куда ли мне мной мои мой моя моё мы на
            над нам нас наш наша наше не него нее неё нет ни них но ну о об он она они оно от по под
            почему при про с свои свой своя себя сколько со так также там твой твоя те тебе тебя тем то
            тоже той только том тот ты у уже чего чей чем что чтобы чья эта эти это этого этой этот я
            """.split()
        ),
        "spanish": frozenset(
            """
            a al algo antes aquí así aun aunque bien cada como cómo con cual cuál cuáles cuando cuándo
            cuánto de del desde donde dónde dos e el él ella ellas ellos en entre era eran es esa ese eso
            esta está están estaba este esto estos fue fueron ha había han hasta hay he la las le les lo
            los más me mi mí mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otro para
            pero por porque qué que quién quien quiénes se sea según ser si sí sido sin sobre solo son soy
            su sus también te tengo ti tiene tienen todo todos tu tú tus un una uno unos y ya yo
            """.split()
        ),
        "swedish": frozenset(
            """
            alla att av blev blir da de dem den denna deras dess det detta dig din ditt du där då efter
            eller en er ett från för ha hade han hans har henne hennes hon honom hos hur här i icke ifrån
            in inte ja jag kan kunde man med mig min mina mitt mot mycket när nej ni nu någon något några
            och också om oss på sedan sig sin sina sitt själv ska skulle som till under upp ut utan vad
            var vara varför vart vem vi vid vilka vilken vilket vår våra är
            """.split()
        ),
        "turkish": frozenset(
            """
            acaba ama ancak bana bazı ben benim beri bir biri biz bize bizim bu bunu bunun burada böyle
            çok çünkü da daha de değil diye en gibi göre hangi hem hep her hiç için ile ise kaç kadar ki
            kim kime kimin mi mu mü mı nasıl ne neden nerede nereye niçin niye o olan olarak oldu olduğu
            olur on ona onlar onun sana sen senin şey siz şu tüm var ve veya ya yok zaman
            """.split()
        ),
    }
)
"""The function words of each language by the name of its Snowball stemmer, as they are written, in small letters."""
