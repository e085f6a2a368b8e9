"""Whether a KV budget costs what was expected: predicted against measured divergence from the full cache.

    kvasir calibrate-kv MODEL --file TUNING --cost-curve
    kvasir eval kv MODEL --file TEXT --report DIR --suite p2 --long-windows 0 --policies ladder-priced --budgets 0.5,0.4,0.3,0.2,0.15,0.1
    kvasir eval kv-regret MODEL --file TEXT --budgets 0.5,0.4,0.3,0.2,0.15,0.1 --acts acts.csv
    python3 bench/kv_cost_model.py MODEL.kv.json DIR/rows.csv acts.csv

Three predictions of each window and budget: by the curve alone, as `kvasir plan` makes it; by the curve read at the planned cost of that
very window; and by the line of divergence over that cost.
"""
import argparse
import csv
import json
import math
import statistics
from collections import defaultdict


def table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def measured_in(paths, policy):
    """(window, budget): (KL, ratio)."""
    found = {}
    for path in paths:
        for row in table(path):
            if row["suite"] == "p2" and row["ctx"] == "2048" and row["policy"] == policy:
                key = int(row["item"]), float(row["budget"])
                found[key] = float(row["kl"]), math.exp(float(row["nll"]) - float(row["full_nll"]))
    return found


def planned_in(path):
    costs = defaultdict(list)
    for row in table(path):
        costs[int(row["window"]), float(row["budget"])].append(float(row["planned"]))
    return {key: statistics.mean(values) for key, values in costs.items()}


def at_cost(points, planned):
    """The divergence on the curve where plans cost so much; between points by logarithms."""
    by_cost = sorted((point["planned"], point["kl"]) for point in points)
    above = next((i for i, (cost, _) in enumerate(by_cost) if cost >= planned and i > 0), len(by_cost) - 1)
    (low, kl_low), (high, kl_high) = by_cost[above - 1], by_cost[above]
    place = math.log(planned / low) / math.log(high / low)
    return math.exp((1 - place) * math.log(kl_low) + place * math.log(kl_high))


def judge(name, predicted, measured):
    """The three bars of a prediction: median error, share within a factor of 2, order of each two budgets of a window."""
    factors = [predicted[key] / measured[key][0] for key in predicted]
    errors = [abs(factor - 1) for factor in factors]
    pairs = [(a, b) for a in predicted for b in predicted if a[0] == b[0] and a[1] < b[1]]
    right = sum((predicted[a] > predicted[b]) == (measured[a][0] > measured[b][0]) for a, b in pairs)
    within = sum(0.5 <= factor <= 2 for factor in factors)
    print(f"{name}: median error {statistics.median(errors):.0%}, within a factor of 2: {within} of {len(factors)}, "
          f"order of two budgets: {right} of {len(pairs)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calibration")
    parser.add_argument("rows", nargs="+", help="rows.csv of eval kv; behind them acts.csv of eval kv-regret")
    args = parser.parse_args()
    with open(args.calibration, encoding="utf-8") as file:
        curve = json.load(file)["kv_cost_curve"]
    points = {point["budget"]: point for point in curve["points"]}
    measured = measured_in(args.rows[:-1], curve["policy"])
    planned = planned_in(args.rows[-1])
    keys = sorted(key for key in measured if key in planned and key[1] in points)
    by_curve = {key: points[key[1]]["kl"] for key in keys}
    by_window = {key: at_cost(curve["points"], planned[key]) for key in keys}
    by_line = {key: curve["least_kl"] + curve["kl_per_cost"] * planned[key] for key in keys}
    print("window  budget  KL measured  by the curve  at its cost  by the line   ratio  expected")
    inside = 0
    for key in keys:
        point, (kl, ratio) = points[key[1]], measured[key]
        inside += point["ratio_low"] - 0.0005 <= ratio <= point["ratio_high"] + 0.0005
        print(f"{key[0]:6}  {key[1]:6.0%}  {kl:11.4f}  {by_curve[key]:12.4f}  {by_window[key]:11.4f}  {by_line[key]:11.4f}  {ratio:6.3f}  "
              f"{point['ratio_low']:.3f} to {point['ratio_high']:.3f}")
    judge("by the curve", by_curve, measured)
    judge("by the curve at the window's planned cost", by_window, measured)
    judge("by the line", by_line, measured)
    print(f"ratio inside the expected range: {inside} of {len(keys)}")


if __name__ == "__main__":
    main()
