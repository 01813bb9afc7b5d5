"""
English words whose forms no stemmer joins: a question asks where she "went", a turn says "go".

The first word of each entry is the form that questions use; all forms of an entry stand for each
other.  Forms that are words of their own as often ("saw", "left", "found", "felt", "lay") count too:
that a few more texts hold a word makes it less telling, and that is all it does.
"""

from __future__ import annotations

IRREGULAR = """
become became; begin began begun; bend bent; bite bit bitten; blow blew blown; break broke broken; bring brought;
build built; burn burnt; buy bought; catch caught; choose chose chosen; come came; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought;
find found; fly flew flown; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept;
know knew known; lead led; learn learnt; leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid;
ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; sell sold; send sent; sew sewn;
shake shook shaken; shine shone; shoot shot; show shown; sing sang sung; sink sank sunk; sit sat; sleep slept;
speak spoke spoken; spend spent; steal stole stolen; stick stuck; strike struck; swear swore sworn; swim swam swum;
take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood;
wake woke woken; wear wore worn; win won; write wrote written;
child children; foot feet; tooth teeth; mouse mice; man men; woman women; person people; wife wives; life lives;
knife knives; leaf leaves; half halves; shelf shelves; goose geese
"""
