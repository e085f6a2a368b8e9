"""The results of a load: kvasir_load's lines as rates, percentiles and the share of requests that kept the SLO."""
import json
import math

TTFT_MS = 2000  # the SLO: the first token within this,
GAP_MS = 100    # and 95% of a request's gaps between tokens at most this
GAP_SHARE = 0.95


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def percentile(values, share):
    """The least value that `share` of them do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def gaps_of(outcome):
    """Between the pieces of its text: a token that shows no text of its own comes with the next."""
    return [after - before for before, after in zip(outcome["token_ms"], outcome["token_ms"][1:])]


def ttft_of(outcome):
    """From when it should have been sent: a client that is late would hide a server that is."""
    return outcome["token_ms"][0] - outcome["planned_ms"]


def came_whole(outcome):
    return outcome["status"] == 200 and "error" not in outcome and outcome["token_ms"]


def keeps_slo(outcome):
    if not came_whole(outcome) or ttft_of(outcome) > TTFT_MS:
        return False
    gaps = gaps_of(outcome)
    return sum(gap <= GAP_MS for gap in gaps) >= GAP_SHARE * len(gaps)


def is_refused(outcome):
    return outcome["status"] in (429, 503)


def refusals(outcomes):
    """How fast those came, and whether each said when to try again."""
    refused = [outcome for outcome in outcomes if is_refused(outcome)]
    times = [outcome["status_ms"] - outcome["planned_ms"] for outcome in refused]
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99), "most": max(times, default=None),
            "without_retry_after": sum("retry_after_s" not in outcome for outcome in refused)}


def summary(outcomes, seconds, client_cpu_seconds, server_cpu_seconds):
    whole = [outcome for outcome in outcomes if came_whole(outcome)]
    ttfts = [ttft_of(outcome) for outcome in whole]
    gaps = [gap for outcome in whole for gap in gaps_of(outcome)]
    cpu = client_cpu_seconds + server_cpu_seconds
    return {
        "requests": len(outcomes),
        "whole": len(whole),
        "refused": sum(map(is_refused, outcomes)),
        "retries": sum(outcome["retries"] for outcome in outcomes),
        "refusal_ms": refusals(outcomes),
        "in_slo": sum(map(keeps_slo, outcomes)),
        "seconds": seconds,
        "tokens_per_s": sum(outcome["tokens"] for outcome in whole) / seconds,
        "ttft_ms": {"mean": sum(ttfts) / len(ttfts) if ttfts else None, "p50": percentile(ttfts, 0.5),
                    "p95": percentile(ttfts, 0.95), "p99": percentile(ttfts, 0.99)},
        "gap_ms": {"p50": percentile(gaps, 0.5), "p95": percentile(gaps, 0.95), "p99": percentile(gaps, 0.99),
                   "most": max(gaps, default=None)},
        "client_cpu_share": client_cpu_seconds / cpu if cpu else None,
    }
