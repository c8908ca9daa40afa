"""What messages tell, and what can be inferred from them: the words of a review, and no more."""

from __future__ import annotations

from collections.abc import Mapping

MEANING: Mapping[str, str] = {
    "hello": "who it is, how many rows and columns it has, the salted digest of all its ordered "
    "sample ids, how far it is in the run, a key for the sums of this run and its signature; of "
    "its ledger the epsilon that is left, how many charges it holds (ledger) and the last link of "
    "their chain (head); and as witness how many charges, and which link, it last saw of every "
    "other site's (seen_ledgers, seen_heads)",
    "ready": "that it would begin, or has begun",
    "contribution": "a number for every row: its columns times its own weights",
    "masked": "a number for every row, its columns times its own weights, under masks which only "
    "the sum over all parties has not",
    "iterate": "all of its weights as they are after the round",
    "proposal": "which of its columns it would take and with which sign, and a sketch of that "
    "column when it is first taken",
    "matched": "how many sample ids it has, as points of a curve that hide them under its own key",
    "aligned": "that it has found the common samples, and how many they are",
    "ended": "that it has ended the run",
    "stopped": "that it has stopped",
    "refusal": "why it does not answer, in one line",
    "greet": "which run this is, and the digest of its terms",
    "rehearse": "what begin tells",
    "begin": "of all parties the numbers of rows and columns, the keys for sums with their "
    "signatures, how many charges their ledgers hold and the last links, and what others last saw "
    "of the ledger of the party that is told",
    "price": "a number for every row: the slope of the loss at the joint prediction",
    "query": "a number for every row, or for every number of a sketch: what the model has not "
    "explained of the labels",
    "ask": "a question for scores; in a Frank-Wolfe model with the weights of the party's columns",
    "neighbours": "the weights of a node's neighbours",
    "match": "how many sample ids the label owner has, hidden in the same way",
    "common": "the points of the samples that all sites have, under the label owner's key, and "
    "all points of the party under both keys",
    "end": "that the run is over, and why",
    "stop": "that the run is given up, and why",
}
"""What every kind of message tells that can leave a site, as a party or as the coordinator."""

INFERRED: Mapping[str, str] = {
    "sharing": "whoever coordinates learns the joint column space of all parties, exactly, within "
    "about as many rounds as there are columns; and with it any column of zeros and ones, such as "
    "a diagnosis, row by row. Nothing but noise prevents it",
    "network": "every node's weights after each round are known to its neighbours and to the hub, "
    "and nothing bounds what they tell of its rows and labels",
    "predict": "the scores of all samples, without noise, which no guarantee of the training "
    "covers. In a Frank-Wolfe model the coordinator names the weights: with a weight of 1 on one "
    "column, and 0 on the others, it learns that column",
    "align": "how many ids each site has and how many are common, by all sites; by the label "
    "owner, for each party, which of its own samples that party has; by each party, which of its "
    "samples all sites have. A site that puts guessed ids among its own learns which of them "
    "others have",
}
"""What a run without a guarantee tells, by algorithm."""

RAW_COLUMNS = (
    "whole raw columns (sketch = 0): one in each round, and whoever coordinates chooses which by "
    "what it asks; all of them, in some more rounds than columns"
)
"""The same of a Frank-Wolfe without sketches."""

SKETCHES = (
    "sketches hide no column: one of zeros and ones can be solved for exactly by linear "
    "programming, and others from enough sketched rows"
)
"""The same of one with them."""

COVERED = (
    "of what the guarantee covers, no more than it allows, whatever else is known. Not covered: "
    "sizes, the digest of ids, the budget that is left, times, and that somebody takes part"
)
"""What a private run tells."""

PASSED_ON = (
    "to all parties, by the coordinator: how many columns or rows this site has, the key of this "
    "run, and of its ledger how many charges it holds and the last link"
)
"""What of a hello the others get to know."""

SIGNED = "each party's key of this run is signed by its site, by the key that this consent holds"
"""How parties of a run with masks know each other."""

UNSIGNED = (
    "as the engine's certificates say: nothing in this run is signed, and the keys in a consent "
    "are not compared"
)
"""The same without masks."""
