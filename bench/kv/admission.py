#!/usr/bin/env python3
"""Whether requests that lose more should get more bytes: one budget for all beside budgets by what is expected of each.

    kvasir eval kv MODEL --file TEXT --report DIR --suite p2 --long-windows 0 --policies ladder-learned --budgets 0.3,0.25,0.2,0.15,0.12,0.1
    python3 bench/kv/admission.py DIR/rows.csv DIR/rows.csv ...     one file for each kind of text; a window stands for a request

Each window's ln KL is a line over the budget between those measured. A pool shares its bytes out so that the sum of the expected KL is
least; no request gets more than 40% above or below its part. Three expectations: the measured KL itself (nobody knows it), a line of
ln KL over the model's loss on the text (how uncertain it is), and the mean of the other windows of this kind of text. The last two come
from other windows than the one that is judged.
"""
import argparse
import csv
import math
import statistics
from collections import defaultdict

MOST, STEPS = 0.4, 80


def table(path, policy):
    curves, loss = defaultdict(dict), {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["policy"] != policy or row["suite"] != "p2":
                continue
            curves[int(row["item"])][float(row["budget"])] = math.log(float(row["kl"]))
            loss[int(row["item"])] = float(row["full_nll"])
    return [(sorted(curve.items()), loss[window]) for window, curve in curves.items()]


def at(curve, budget):
    """ln KL of a curve [(budget, ln KL)], on its end's slope beyond its ends."""
    last = len(curve) - 2
    place = next((i for i in range(last + 1) if budget <= curve[i + 1][0]), last)
    (low, first), (high, second) = curve[place], curve[place + 1]
    return first + (second - first) * (budget - low) / (high - low)


def shared_out(expected, mean):
    """Budgets of at most that mean with the least sum of expected KL, by one price for a byte."""
    grid = [mean * (1 - MOST + 2 * MOST * i / STEPS) for i in range(STEPS + 1)]
    costs = [[math.exp(at(curve, budget)) for budget in grid] for curve in expected]

    def at_price(price):
        return [grid[min(range(len(grid)), key=lambda i, of_window=of_window: of_window[i] + price * grid[i])] for of_window in costs]

    low, high = 0.0, 100.0
    for _ in range(50):
        price = (low + high) / 2
        low, high = (price, high) if statistics.mean(at_price(price)) > mean else (low, price)
    return at_price(high)


def moved(curve, by):
    return [(budget, value + by) for budget, value in curve]


def mean_curve(curves):
    return [(budget, statistics.mean(value for curve in curves for at_budget, value in curve if at_budget == budget)) for budget, _ in curves[0]]


def by_loss(windows, i):
    """The mean curve of the others, moved by a line over the loss."""
    others = windows[:i] + windows[i + 1:]
    levels = [statistics.mean(value for _, value in curve) for curve, _ in others]
    losses = [loss for _, loss in others]
    slope, start = statistics.linear_regression(losses, levels)
    return moved(mean_curve([curve for curve, _ in others]), start + slope * windows[i][1] - statistics.mean(levels))


def ranks(values):
    return [sum(other < value for other in values) for value in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--policy", default="ladder-learned")
    args = parser.parse_args()
    kinds = [table(path, args.policy) for path in args.rows]
    windows = [window for kind in kinds for window in kind]
    expectations = {"perfect knowledge": [curve for curve, _ in windows],
                    "the model's loss on the text": [by_loss(windows, i) for i in range(len(windows))],
                    "the kind of text": [mean_curve([curve for j, (curve, _) in enumerate(kind) if j != i]) for kind in kinds for i in range(len(kind))]}
    correlation = statistics.correlation(ranks([loss for _, loss in windows]), ranks([statistics.mean(value for _, value in curve) for curve, _ in windows]))
    print(f"{len(windows)} windows of {len(kinds)} kinds of text; rank correlation of ln KL with the loss on the text {correlation:+.2f}")
    for mean in (0.25, 0.2, 0.15):
        alike = statistics.mean(math.exp(at(curve, mean)) for curve, _ in windows)
        line = f"{mean:.0%} in the mean: alike for all KL {alike:.4f}"
        for name, expected in expectations.items():
            budgets = shared_out(expected, mean)
            kl = statistics.mean(math.exp(at(curve, budget)) for (curve, _), budget in zip(windows, budgets))
            line += f"; by {name} {kl:.4f} ({kl / alike - 1:+.1%})"
        print(line)


if __name__ == "__main__":
    main()
